// Scripts for one span of operators: it runs operators that make, overwrite, fill and view storages
// in all the ways that a span must tell apart, saves tensors among them, and then unpacks and drops
// what was saved, in several graph tasks and threads. After each step, what came back, what was
// refused, and what is alive must be as span_results.h says; and what came back has the contents
// that were saved.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shared/replay/replayer.h"
#include "shared/seam/checkpoint_context.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/hand.h"
#include "tests/shared/checkpoint/hand_world.h"
#include "tests/shared/replay/drawn_op.h"
#include "tests/shared/replay/hand_ops.h"
#include "tests/shared/replay/moving_hooks.h"
#include "tests/shared/replay/span_results.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {
namespace {

using choices::Draws;

// Some of its tensors are more than windows on their storages.
struct HandDevice : sim::SimDevice {
  HandDevice(sim::Machine& machine, const HandOps& of) : sim::SimDevice(machine), ops(&of) {}
  bool plain(const sim::Tensor& tensor) const { return ops->is_plain(tensor); }
  const HandOps* ops;
};

class SpanScript {
 public:
  SpanScript(std::uint64_t number, const Rules& rules, int steps)
      : draws_(number),
        steps_(steps),
        has_around_(draws_.one_in(2)),
        declines_(draws_.one_in(4)),
        model_(has_around_, has_around_ && !declines_),
        replayer_(HandDevice(world_.machine, ops_), world_.autograd, rules) {}

  Objection run() {
    forward();
    while (steps_ > 0 && world_.is_right()) use();
    judge_counts();
    for (std::size_t i = 0; i < saves_.size(); ++i) drop(i);
    tensors_.clear();
    if (!replayer_.empty() || !world_.empty()) {
      world_.object("leak", "something is left of a span that autograd has dropped");
    }
    return world_.objection();
  }

 private:
  using Span = Replayer<HandDevice, HandAutograd>::Span;
  using Seen = SeenCall<HandDevice>;
  // A tensor of the script's.
  struct Save {
    std::unique_ptr<Saved<sim::Tensor>> saved;
    std::vector<std::uint64_t> contents;
    std::uint64_t storage = 0;
  };

  void forward() {
    for (int i = draws_.in(1, 3); i > 0; --i) {
      tensors_.push_back(ops_.make_new(SpanResults::kBytes));
      ops_.run({world_.next_number(), {true}, true, false, {}, 0}, {tensors_.back()}, false);
    }
    const int place = draws_.few(4, 2) - 1;
    world_.state.task = place < 0 ? GraphTaskId::kNone : world_.state.tasks.at(place);
    std::optional<HooksGuard<HandAutograd>> hooks;
    if (has_around_) hooks.emplace(world_.autograd, around_);
    begin();
    // Half of the script's steps are forward's.
    for (int left = (steps_ + 1) / 2; left > 0 && world_.is_right(); --left) {
      --steps_;
      step();
    }
    try {
      span_->end();
    } catch (const std::exception& error) {
      world_.object("error", std::string("a span's end throws: ") + error.what());
    }
    model_.end();
    // Nothing that runs from now on is the span's.
    if (draws_.one_in(3)) run_op();
    if (draws_.one_in(3)) save();
    if (!draws_.one_in(3)) tensors_.clear();
    span_.reset();
    world_.state.task = GraphTaskId::kNone;
    judge_alive();
  }

  // In a group of backwards, which a span must not keep alive.
  void begin() {
    auto group = std::make_shared<ExecGroup>();
    const std::weak_ptr<ExecGroup> alive = group;
    {
      const ExecGroupGuard<HandAutograd> guard(world_.autograd, std::move(group));
      span_ = replayer_.begin();
    }
    if (!alive.expired()) world_.object("leak", "a span keeps a group of backwards alive");
  }

  void step() {
    const int what = draws_.in(0, 10);
    if (what < 5) {
      run_op();
    } else if (what < 8) {
      save();
    } else if (what == 8 && tensors_.size() > 1) {
      const auto which = static_cast<std::ptrdiff_t>(draw_one(draws_, tensors_.size()));
      tensors_.erase(tensors_.begin() + which);
    } else {
      use();
      return;
    }
    judge_alive();
  }

  // Runs an operator, and tells the span of it.
  void run_op() {
    const DrawnOp drawn(draws_, ops_, tensors_, world_.next_number());
    const HandOp& op = drawn.op;
    const std::vector<sim::Tensor>& arguments = drawn.arguments;
    const std::vector<sim::Tensor> outputs = ops_.run(op, arguments, false);
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
      seen.run = [this, op](const std::vector<sim::Tensor>& in) { return run_again(op, in); };
    }
    SpanCall call = told(op, seen, elsewhere > 4);
    const ThreadId thread = world_.state.id;
    const GraphTaskId task = world_.state.task;
    std::optional<sim::SimDevice::StreamScope> on;
    if (elsewhere == 2) world_.state.id = ThreadId{7};
    if (elsewhere == 3) world_.state.task = GraphTaskId{99};
    if (elsewhere == 4) on.emplace(world_.device(), world_.machine.compute_stream(1));
    span_->ran(std::move(seen));
    model_.ran(call);
    world_.state.id = thread;
    world_.state.task = task;
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
    for (const sim::Tensor& output : seen.outputs) {
      call.outputs.push_back({number_of(output), ops_.is_plain(output)});
    }
    return call;
  }
  static std::uint64_t number_of(const sim::Tensor& tensor) {
    return tensor->storage ? tensor->storage->identity + 1 : 0;
  }
  static VersionThen version_of(const sim::Tensor& tensor) {
    return {std::shared_ptr<const std::uint64_t>(tensor->version, &tensor->version->value),
            tensor->version->value};
  }

  std::vector<sim::Tensor> run_again(const HandOp& op, const std::vector<sim::Tensor>& arguments) {
    const std::vector<std::int64_t>& steps = model_.steps();
    const std::int64_t more = world_.machine.live_storages() - before_;
    if (at_step_ >= steps.size() || more != steps[at_step_]) {
      world_.object("leak", "call " + std::to_string(at_step_) + " of a replay finds " +
                                std::to_string(more) + " storages that it made, or not so many");
    }
    ++at_step_;
    return ops_.run(op, arguments, true);
  }

  void save() {
    const sim::Tensor tensor = draw_view(draws_, ops_, tensors_[draw_one(draws_, tensors_.size())]);
    model_.pack(number_of(tensor), version_of(tensor), ops_.is_plain(tensor));
    saves_.push_back({span_->hooks()->pack(tensor), ops_.contents(tensor), number_of(tensor)});
    if (!saves_.back().saved) world_.object("error", "a span's hooks let go of a saved tensor");
  }

  // Of what was saved.
  void use() {
    if (!span_) --steps_;
    const int what = draws_.in(0, 8);
    const Unpacker who{draws_.in(-1, HandTasks::kPlaces), -1, draws_.few(4, 2),
                       static_cast<std::uint32_t>(draws_.few(6, 2))};
    if (what == 0) {
      const int place = draws_.in(0, HandTasks::kPlaces);
      const auto task = static_cast<std::int64_t>(world_.state.tasks.at(place));
      world_.state.tasks.end(place);
      model_.task_ended(task);
    } else if (what == 1 && !tensors_.empty()) {
      const sim::Tensor tensor = tensors_[draw_one(draws_, tensors_.size())];
      if (!span_ && tensor->storage) write(tensor);
    } else if (!saves_.empty()) {
      const std::size_t which = draw_one(draws_, saves_.size());
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
  void write(const sim::Tensor& tensor) {
    ops_.run({world_.next_number(), {true}, true, false, {}, 0}, {tensor}, false);
    ++tensor->version->value;
  }

  void unpack(std::size_t which, const Unpacker& who) {
    const GraphTaskId task = std::exchange(
        world_.state.task, who.task < 0 ? GraphTaskId::kNone : world_.state.tasks.at(who.task));
    const ThreadId thread = std::exchange(world_.state.id, ThreadId(who.thread));
    const std::string must = model_.unpack(
        which, who.task < 0 ? -1 : static_cast<std::int64_t>(world_.state.task), who.thread);
    std::string is;
    at_step_ = 0;
    before_ = world_.machine.live_storages();
    {
      const sim::SimDevice::StreamScope on(world_.device(),
                                           world_.machine.compute_stream(who.stream));
      try {
        const sim::Tensor tensor = saves_[which].saved->unpack();
        judge_unpacked(which, tensor);
      } catch (const std::exception& error) {
        is = error.what();
      }
    }
    world_.state.task = task;
    world_.state.id = thread;
    if (must != is) {
      world_.object("error", "saved tensor " + std::to_string(which) + " of a span: \"" + is +
                                 "\", not \"" + must + "\"");
    }
    if (at_step_ != model_.steps().size()) {
      world_.object("count", "a replay runs " + std::to_string(at_step_) + " calls, not " +
                                 std::to_string(model_.steps().size()));
    }
  }
  void judge_unpacked(std::size_t which, const sim::Tensor& tensor) {
    if (ops_.contents(tensor) != saves_[which].contents) {
      world_.object("value", "saved tensor " + std::to_string(which) + " of a span is another");
    }
    if (!model_.is_made(which)) return;
    if (number_of(tensor) == saves_[which].storage) {
      world_.object("count", "what a span made was kept");
    }
    world_.read(tensor);
  }

  void judge_alive() {
    std::set<std::uint64_t> held = model_.held();
    for (const sim::Tensor& tensor : tensors_) held.insert(number_of(tensor));
    held.erase(0);
    const std::int64_t must = static_cast<std::int64_t>(held.size()) + model_.made_again();
    if (world_.machine.live_storages() == must) return;
    world_.object("leak", "a span, its script and autograd have " +
                              std::to_string(world_.machine.live_storages()) + " storages, not " +
                              std::to_string(must));
  }
  void judge_counts() {
    const ReplayStatistics is = replayer_.statistics();
    const SpanResultCounts& must = model_.counts();
    const auto differs = [this](std::int64_t found, std::int64_t expected, const char* name) {
      if (found == expected) return;
      world_.object("count", "a span counts " + std::to_string(found) + " " + name + ", not " +
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

  Draws draws_;
  int steps_;
  const bool has_around_;
  const bool declines_;
  HandWorld world_;
  HandOps ops_{world_.machine};
  std::shared_ptr<MovingHooks> around_ = std::make_shared<MovingHooks>(ops_, declines_);
  SpanResults model_;
  Replayer<HandDevice, HandAutograd> replayer_;
  std::shared_ptr<Span> span_;  // until it has ended
  std::vector<sim::Tensor> tensors_;
  std::vector<Save> saves_;
  std::size_t at_step_ = 0;  // of the replay that runs
  std::int64_t before_ = 0;  // storages
};

Objection try_span(std::uint64_t number, const Rules& rules, int steps = kScriptSteps) {
  return SpanScript(number, rules, steps).run();
}

TEST(SpanDrawn, TheCoreDoesAsTheModelSays) {
  const auto core = [](std::uint64_t number) { return try_span(number, {}); };
  EXPECT_EQ(first_objection(core, kScripts), "");
}

TEST(SpanDrawn, EachRuleOfSavedTensorsShows) {
  expect_shown(
      kShownBySpans,
      [](std::uint64_t number, const Rules& rules) { return try_span(number, rules); }, kScripts);
}

TEST(SpanDrawn, AScriptWithoutStepsHasNoOperators) { EXPECT_EQ(try_span(7, {}, 0), std::nullopt); }

}  // namespace
}  // namespace ferry::test
