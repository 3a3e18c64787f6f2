#include "sim/verify/scripts/span_script.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "shared/seam/checkpoint_context.h"
#include "sim/choices/draws.h"
#include "sim/run/run_parts.h"
#include "sim/verify/oracles/hazards.h"
#include "sim/verify/oracles/span_results.h"
#include "sim/verify/oracles/vain_waits.h"
#include "sim/verify/scripts/hand.h"
#include "sim/verify/scripts/hand_ops.h"

namespace ferry::verify {
namespace {

using choices::Draws;
using sim::Tensor;

// Some of its tensors are more than windows on their storages.
struct HandDevice : sim::SimDevice {
  HandDevice(sim::Machine& machine, const HandOps& of) : sim::SimDevice(machine), ops(&of) {}
  bool plain(const Tensor& tensor) const { return ops->is_plain(tensor); }
  const HandOps* ops;
};

class SpanScript {
 public:
  SpanScript(const DrawnUses& uses, const Rules& rules, StreamOpConsumer* watch)
      : draws_(static_cast<std::uint64_t>(uses.number)),
        steps_(uses.steps),
        has_around_(draws_.one_in(2)),
        declines_(draws_.one_in(4)),
        model_(has_around_, has_around_ && !declines_),
        replayer_(HandDevice(machine_, ops_), autograd_, rules) {
    if (watch) machine_.add_consumer(watch);
    machine_.add_consumer(&checkers_);
    machine_.add_consumer(&waits_);
  }

  std::optional<Verdict> run() {
    forward();
    while (steps_ > 0 && is_right()) use();
    judge_counts();
    for (std::size_t i = 0; i < saves_.size(); ++i) drop(i);
    tensors_.clear();
    if (is_right() &&
        (!replayer_.empty() || machine_.live_storages() > 0 || machine_.live_events() > 0)) {
      object(Oracle::kLeak, "something is left of a span that autograd has dropped");
    }
    if (!is_right()) return wrong_;
    if (auto hazard = judge_hazards(checkers_.hazards(machine_.hazards()))) return hazard;
    if (!waits_.complaint().empty()) object(Oracle::kMoves, waits_.complaint());
    if (!is_right()) return wrong_;
    return std::nullopt;
  }

 private:
  using Span = Replayer<HandDevice, HandAutograd>::Span;
  using Seen = SeenCall<HandDevice>;
  // A tensor of the script's.
  struct Save {
    std::unique_ptr<Saved<Tensor>> saved;
    std::vector<std::uint64_t> contents;
    std::uint64_t storage = 0;
  };

  void forward() {
    for (int i = draws_.in(1, 3); i > 0; --i) {
      tensors_.push_back(ops_.make_new(SpanResults::kBytes));
      ops_.run({++numbers_, {true}, true, false, {}, 0}, {tensors_.back()}, false);
    }
    const int place = draws_.few(4, 2) - 1;
    state_.task = place < 0 ? GraphTaskId::kNone : state_.tasks.at(place);
    std::optional<HooksGuard<HandAutograd>> hooks;
    if (has_around_) hooks.emplace(autograd_, around_);
    begin();
    // Half of the script's steps are forward's.
    for (int left = (steps_ + 1) / 2; left > 0 && is_right(); --left) {
      --steps_;
      step();
    }
    try {
      span_->end();
    } catch (const std::exception& error) {
      object(Oracle::kError, std::string("a span's end throws: ") + error.what());
    }
    model_.end();
    // Nothing that runs from now on is the span's.
    if (draws_.one_in(3)) run_op();
    if (draws_.one_in(3)) save();
    if (!draws_.one_in(3)) tensors_.clear();
    span_.reset();
    state_.task = GraphTaskId::kNone;
    judge_alive();
  }

  // In a group of backwards, which a span must not keep alive.
  void begin() {
    auto group = std::make_shared<ExecGroup>();
    const std::weak_ptr<ExecGroup> alive = group;
    {
      const ExecGroupGuard<HandAutograd> guard(autograd_, std::move(group));
      span_ = replayer_.begin();
    }
    if (!alive.expired()) object(Oracle::kLeak, "a span keeps a group of backwards alive");
  }

  void step() {
    const int what = draws_.in(0, 10);
    if (what < 5) {
      run_op();
    } else if (what < 8) {
      save();
    } else if (what == 8 && tensors_.size() > 1) {
      const auto which = static_cast<std::ptrdiff_t>(draw_one(tensors_.size()));
      tensors_.erase(tensors_.begin() + which);
    } else {
      use();
      return;
    }
    judge_alive();
  }

  HandOp draw_op(std::vector<Tensor>& arguments) {
    HandOp op;
    op.number = ++numbers_;
    op.overwrites = draws_.one_in(2);
    op.blank = draws_.one_in(5);
    for (int count = op.blank ? 0 : draws_.in(0, 4); count > 0; --count) {
      // The latest ones more often.
      const std::size_t back = std::min(draw_one(tensors_.size()), draw_one(tensors_.size()));
      arguments.push_back(seen_as(tensors_[tensors_.size() - 1 - back]));
      op.written.push_back(draws_.one_in(3));
    }
    for (int count = op.blank ? 1 : draws_.in(0, 3); count > 0; --count) {
      HandOp::Output output;
      const int kind = draws_.in(0, 12);
      if (kind == 0 && !arguments.empty()) {
        output = {HandOp::Makes::kView, draw_one(arguments.size()), false};
      } else if (kind == 1 && !op.outputs.empty()) {
        output = {HandOp::Makes::kAgain, 0, false};
      } else if (kind == 2) {
        output.makes = HandOp::Makes::kNothing;
      }
      output.odd = output.makes == HandOp::Makes::kNew && draws_.one_in(12);
      op.outputs.push_back(output);
    }
    if (draws_.one_in(24)) op.again_bytes = draws_.one_in(2) ? -1 : 2 * SpanResults::kBytes;
    return op;
  }
  std::size_t draw_one(std::size_t of) {
    return static_cast<std::size_t>(draws_.in(0, static_cast<int>(of)));
  }
  // The tensor, or a window on it.
  Tensor seen_as(const Tensor& tensor) {
    const int how = draws_.in(0, 12);
    if (!tensor->storage || !ops_.is_plain(tensor) || how > 4) return tensor;
    if (how == 0) return ops_.sparse(tensor);
    if (how == 1) return ops_.odd(tensor);
    const int begin = draws_.in(0, HandOps::kCells);
    return ops_.view(tensor, begin, draws_.in(1, HandOps::kCells - begin + 1));
  }

  // Runs an operator, and tells the span of it.
  void run_op() {
    std::vector<Tensor> arguments;
    const HandOp op = draw_op(arguments);
    const std::vector<Tensor> outputs = ops_.run(op, arguments, false);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (op.written[i]) ++arguments[i]->version->value;
    }
    Seen seen;
    seen.makes_blank = op.blank;
    seen.overwrites = op.overwrites;
    seen.outputs = outputs;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      seen.arguments.push_back({arguments[i], op.written[i], !draws_.one_in(3)});
    }
    const int elsewhere = draws_.in(0, 32);
    if (elsewhere > 1) {
      seen.run = [this, op](const std::vector<Tensor>& in) { return run_again(op, in); };
    }
    SpanCall call = told(op, seen, elsewhere > 4);
    const ThreadId thread = state_.thread;
    const GraphTaskId task = state_.task;
    std::optional<sim::SimDevice::StreamScope> on;
    if (elsewhere == 2) state_.thread = ThreadId{7};
    if (elsewhere == 3) state_.task = GraphTaskId{99};
    if (elsewhere == 4) on.emplace(device(), machine_.compute_stream(1));
    span_->ran(std::move(seen));
    model_.ran(call);
    state_.thread = thread;
    state_.task = task;
    tensors_.insert(tensors_.end(), outputs.begin(), outputs.end());
  }

  SpanCall told(const HandOp& op, const Seen& seen, bool in_place_of_span) const {
    SpanCall call;
    call.in_place_of_span = in_place_of_span;
    call.blank = op.blank;
    call.overwrites = op.overwrites;
    call.other_bytes = op.again_bytes;
    for (const Seen::Argument& each : seen.arguments) {
      call.arguments.push_back({number_of(each.tensor), version_of(each.tensor), each.written,
                                ops_.is_whole(each.tensor), ops_.is_plain(each.tensor),
                                each.passes});
    }
    for (const Tensor& output : seen.outputs) {
      call.outputs.push_back({number_of(output), ops_.is_plain(output)});
    }
    return call;
  }
  static std::uint64_t number_of(const Tensor& tensor) {
    return tensor->storage ? tensor->storage->identity + 1 : 0;
  }
  static VersionThen version_of(const Tensor& tensor) {
    return {std::shared_ptr<const std::uint64_t>(tensor->version, &tensor->version->value),
            tensor->version->value};
  }

  std::vector<Tensor> run_again(const HandOp& op, const std::vector<Tensor>& arguments) {
    const std::vector<std::int64_t>& steps = model_.steps();
    const std::int64_t more = machine_.live_storages() - before_;
    if (at_step_ >= steps.size() || more != steps[at_step_]) {
      object(Oracle::kLeak, "call " + std::to_string(at_step_) + " of a replay finds " +
                                std::to_string(more) + " storages that it made, or not so many");
    }
    ++at_step_;
    return ops_.run(op, arguments, true);
  }

  void save() {
    const Tensor tensor = seen_as(tensors_[draw_one(tensors_.size())]);
    model_.pack(number_of(tensor), version_of(tensor), ops_.is_plain(tensor));
    saves_.push_back({span_->hooks()->pack(tensor), ops_.contents(tensor), number_of(tensor)});
    if (!saves_.back().saved) object(Oracle::kError, "a span's hooks let go of a saved tensor");
  }

  // Of what was saved.
  void use() {
    if (!span_) --steps_;
    const int what = draws_.in(0, 8);
    const Unpacker who{draws_.in(-1, HandTasks::kPlaces), -1, draws_.few(4, 2),
                       static_cast<std::uint32_t>(draws_.few(6, 2))};
    if (what == 0) {
      const int place = draws_.in(0, HandTasks::kPlaces);
      const auto task = static_cast<std::int64_t>(state_.tasks.at(place));
      state_.tasks.end(place);
      model_.task_ended(task);
    } else if (what == 1 && !tensors_.empty()) {
      const Tensor tensor = tensors_[draw_one(tensors_.size())];
      if (!span_ && tensor->storage) write(tensor);
    } else if (!saves_.empty()) {
      const std::size_t which = draw_one(saves_.size());
      if (!saves_[which].saved) return;
      what == 2 ? drop(which) : unpack(which, who);
    }
    judge_alive();
  }
  void drop(std::size_t which) {
    if (!saves_[which].saved) return;
    saves_[which].saved.reset();
    model_.drop(which);
  }
  // In place, after the span.
  void write(const Tensor& tensor) {
    ops_.run({++numbers_, {true}, true, false, {}, 0}, {tensor}, false);
    ++tensor->version->value;
  }

  void unpack(std::size_t which, const Unpacker& who) {
    const GraphTaskId task =
        std::exchange(state_.task, who.task < 0 ? GraphTaskId::kNone : state_.tasks.at(who.task));
    const ThreadId thread = std::exchange(state_.thread, ThreadId(who.thread));
    const std::string must = model_.unpack(
        which, who.task < 0 ? -1 : static_cast<std::int64_t>(state_.task), who.thread);
    std::string is;
    at_step_ = 0;
    before_ = machine_.live_storages();
    {
      const sim::SimDevice::StreamScope on(device(), machine_.compute_stream(who.stream));
      try {
        const Tensor tensor = saves_[which].saved->unpack();
        judge_unpacked(which, tensor);
      } catch (const std::exception& error) {
        is = error.what();
      }
    }
    state_.task = task;
    state_.thread = thread;
    if (must != is) {
      object(oracle_of_errors(is, must), "saved tensor " + std::to_string(which) +
                                             " of a span: \"" + is + "\", not \"" + must + "\"");
    }
    if (at_step_ != model_.steps().size()) {
      object(Oracle::kCount, "a replay runs " + std::to_string(at_step_) + " calls, not " +
                                 std::to_string(model_.steps().size()));
    }
  }
  void judge_unpacked(std::size_t which, const Tensor& tensor) {
    if (ops_.contents(tensor) != saves_[which].contents) {
      object(Oracle::kValue, "saved tensor " + std::to_string(which) + " of a span is another");
    }
    if (!model_.is_made(which)) return;
    if (number_of(tensor) == saves_[which].storage) {
      object(Oracle::kCount, "what a span made was kept");
    }
    const Range range = sim::range_of(tensor);
    machine_.kernel("use", ++numbers_, {&range, 1}, {}, 1);
  }

  void judge_alive() {
    std::set<std::uint64_t> held = model_.held();
    for (const Tensor& tensor : tensors_) held.insert(number_of(tensor));
    held.erase(0);
    const std::int64_t must = static_cast<std::int64_t>(held.size()) + model_.made_again();
    if (machine_.live_storages() == must) return;
    object(Oracle::kLeak, "a span, its script and autograd have " +
                              std::to_string(machine_.live_storages()) + " storages, not " +
                              std::to_string(must));
  }
  void judge_counts() {
    const ReplayStatistics is = replayer_.statistics();
    const SpanResultCounts& must = model_.counts();
    const auto differs = [this](std::int64_t found, std::int64_t expected, const char* name) {
      if (found == expected) return;
      object(Oracle::kCount, "a span counts " + std::to_string(found) + " " + name + ", not " +
                                 std::to_string(expected));
    };
    differs(is.spans, 1, "spans");
    differs(is.calls, must.calls, "calls");
    differs(is.calls_left, must.calls_left, "calls left");
    differs(is.saved, must.saved, "saved");
    differs(is.passed_on, must.passed_on, "passed on");
    differs(is.held, must.held, "held");
    differs(is.replays, must.replays, "replays");
    differs(is.calls_replayed, must.calls_replayed, "calls replayed");
    if (has_around_) differs(around_->packs, must.passed, "tensors for the hooks around");
  }

  sim::SimDevice device() { return sim::SimDevice(machine_); }
  bool is_right() const { return wrong_.words.empty(); }
  void object(Oracle oracle, std::string words) {
    if (is_right()) wrong_ = {oracle, std::move(words)};
  }

  // Lets go of what it is given, and makes it again.
  class Moving final : public Hooks<Tensor> {
   public:
    Moving(HandOps& ops, bool declines) : ops_(ops), declines_(declines) {}
    std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
      ++packs;
      if (declines_) return nullptr;
      return std::make_unique<Moved>(ops_, tensor);
    }
    std::int64_t packs = 0;

   private:
    class Moved final : public Saved<Tensor> {
     public:
      Moved(HandOps& ops, const Tensor& tensor)
          : ops_(ops),
            is_none_(!tensor->storage),
            layout_(tensor->layout),
            version_(tensor->version),
            then_(tensor->version->value) {
        if (!is_none_) cells_ = ops.all(tensor);
      }
      Tensor unpack() override {
        if (version_->value != then_)
          throw make_error<Tensor>(ModifiedInPlace(version_->value, then_));
        const Tensor base = ops_.make_new(SpanResults::kBytes);
        if (is_none_) base->storage = nullptr;
        if (!is_none_) ops_.set(base, cells_);
        return sim::make_tensor(base->storage, layout_, version_);
      }

     private:
      HandOps& ops_;
      const bool is_none_;
      const sim::TensorLayout layout_;
      const sim::Version version_;
      const std::uint64_t then_;
      HandOps::Cells cells_{};
    };
    HandOps& ops_;
    const bool declines_;
  };

  Draws draws_;
  int steps_;
  const bool has_around_;
  const bool declines_;
  sim::Checkers checkers_{sim::Checks::kAll, {.reuse_at_free = true}};
  VainWaits waits_;
  sim::Machine machine_{sim::MachineOptions{}};
  HandOps ops_{machine_};
  std::uint64_t numbers_ = 0;  // of operators
  HandState state_;
  HandAutograd autograd_{state_};
  std::shared_ptr<Moving> around_ = std::make_shared<Moving>(ops_, declines_);
  SpanResults model_;
  Replayer<HandDevice, HandAutograd> replayer_;
  std::shared_ptr<Span> span_;  // until it has ended
  std::vector<Tensor> tensors_;
  std::vector<Save> saves_;
  std::size_t at_step_ = 0;  // of the replay that runs
  std::int64_t before_ = 0;  // storages
  Verdict wrong_;
};

}  // namespace

std::optional<Verdict> try_span_script(const DrawnUses& uses, const Rules& rules,
                                       StreamOpConsumer* watch) {
  return SpanScript(uses, rules, watch).run();
}

}  // namespace ferry::verify
