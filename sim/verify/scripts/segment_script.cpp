#include "sim/verify/scripts/segment_script.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/choices/draws.h"
#include "sim/run/run_parts.h"
#include "sim/verify/oracles/hazards.h"
#include "sim/verify/oracles/segment_results.h"
#include "sim/verify/oracles/vain_waits.h"
#include "sim/verify/scripts/hand.h"

namespace ferry::verify {
namespace {

using choices::Draws;
using sim::Tensor;

constexpr std::uint32_t kStreams = 3;

// What is said to be on another device has a size of its own.
struct SegmentDevice : sim::SimDevice {
  SegmentDevice(sim::Machine& machine, const std::int64_t& bytes)
      : sim::SimDevice(machine), elsewhere(&bytes) {}
  bool on_device(const Tensor& tensor) const { return tensor->storage->bytes != *elsewhere; }
  const std::int64_t* elsewhere;
};

class SegmentScript {
 public:
  SegmentScript(const DrawnUses& uses, const Rules& rules, StreamOpConsumer* watch)
      : draws_(static_cast<std::uint64_t>(uses.number)),
        steps_(uses.steps),
        machine_(sim::MachineOptions{}),
        checkpointer_(SegmentDevice(machine_, elsewhere_), autograd_, rules) {
    if (watch) machine_.add_consumer(watch);
    machine_.add_consumer(&checkers_);
    machine_.add_consumer(&waits_);
    machine_.add_consumer(&recomputed_);
    draw_shape();
    model_.emplace(shape_);
  }

  std::optional<Verdict> run() {
    try {
      forward();
    } catch (const std::exception& error) {
      refused_ = error.what();
    }
    if (refused_ != refusal()) {
      object(Oracle::kError,
             "a segment's call says \"" + refused_ + "\", not \"" + refusal() + "\"");
    }
    if (!refused_.empty()) steps_ = 0;
    while (steps_ > 0 && wrong_.words.empty()) step();
    if (refused_.empty()) judge_counts();
    for (std::size_t i = 0; i < saves_.size(); ++i) drop(i);
    saves_.clear();
    if (!checkpointer_.empty() || machine_.live_storages() > 0 || machine_.live_events() > 0) {
      object(Oracle::kLeak, "something is left of a segment that autograd has dropped");
    }
    if (wrong_.words.empty()) {
      if (auto hazard = judge_hazards(checkers_.hazards(machine_.hazards()))) return hazard;
      if (!waits_.complaint().empty()) object(Oracle::kMoves, waits_.complaint());
    }
    if (wrong_.words.empty()) return std::nullopt;
    return wrong_;
  }

 private:
  using Saves = std::vector<std::unique_ptr<Saved<Tensor>>>;
  struct Options {
    bool around = false;  // there are hooks around
    bool declines = false;
    bool planned = false;      // its choices are a plan's
    bool recomputing = false;  // a recompute calls it: then it makes everything again
    bool misplanned = false;   // for another number of tensors
    bool overridden = false;   // the options that the call is given are not in force
    bool scoped = false;       // it has scopes of the user's
    bool random = false;       // it has its random numbers again
    bool grouped = false;      // forward runs in a group of backwards
  };

  // Counts the waits for what is recomputed.
  class Waits final : public StreamOpConsumer {
   public:
    void operator()(const StreamOp& op) override {
      if (op.kind == StreamOpKind::kWait && op.step == Step::kUnpackRecomputed) ++waits;
    }
    std::int64_t waits = 0;
  };
  enum class Scope : std::uint8_t { kNone, kFirst, kAgain };

  void draw_shape() {
    shape_.packs = static_cast<std::size_t>(draws_.in(1, 6));
    options_.around = draws_.one_in(2);
    options_.declines = draws_.one_in(4);
    options_.planned = draws_.one_in(3);
    options_.recomputing = draws_.one_in(6);
    shape_.early_stop = !draws_.one_in(3);
    shape_.compares = !draws_.one_in(3);
    shape_.debug = draws_.one_in(4);
    options_.misplanned = options_.planned && draws_.one_in(5);
    options_.overridden = draws_.one_in(4);
    options_.scoped = draws_.one_in(4);
    options_.random = draws_.one_in(2);
    options_.grouped = draws_.one_in(4);
    for (std::size_t i = 0; i < shape_.packs; ++i) {
      chosen_.push_back(static_cast<SavedChoice>(draws_.few(6, 3)));
      shape_.streams.push_back(static_cast<std::uint32_t>(draws_.few(4, kStreams)));
      const bool moves = options_.around && !options_.declines;
      const SavedChoice fate =
          chosen_.back() == SavedChoice::kOffload && !moves ? SavedChoice::kKeep : chosen_.back();
      shape_.fates.push_back(options_.recomputing ? SavedChoice::kRecompute : fate);
    }
    shape_.deviation = static_cast<Deviation>(draws_.few(12, kDeviations));
    shape_.place = static_cast<std::size_t>(draws_.in(0, static_cast<int>(shape_.packs)));
    const bool strays = draws_.one_in(4) && shape_.deviation != Deviation::kOtherSize;
    shape_.elsewhere = strays ? shape_.place : shape_.packs;
    if (strays) elsewhere_ = hand_bytes(shape_.place);
    around_ = std::make_shared<HandHooks>(options_.declines);
  }

  // What its call throws; empty: nothing.
  std::string refusal() const {
    if (options_.scoped && shape_.debug) {
      return "debug=True is incompatible with non-default context_fn";
    }
    if (!options_.misplanned) return "";
    return "ferry::checkpoint: the segment saved " + std::to_string(shape_.packs) +
           " tensors, and the plan in force has " + std::to_string(shape_.packs + 1) + " for it";
  }

  // The user's scopes, of which one is alive while the function runs.
  CheckpointContexts scopes() {
    const auto scope = [this](bool again) {
      return [this, again] {
        in_scope_ = again ? Scope::kAgain : Scope::kFirst;
        return CheckpointScope(nullptr, [this](void*) { in_scope_ = Scope::kNone; });
      };
    };
    return {scope(false), scope(true)};
  }
  void judge_context(bool again) {
    const CheckpointContext context = checkpoint_context(autograd_.hooks());
    const Scope scope = !options_.scoped ? Scope::kNone : again ? Scope::kAgain : Scope::kFirst;
    if (in_scope_ != scope) object(Oracle::kError, "a segment runs outside of the user's scope");
    if (context.checkpointing == again || context.recomputing != (again || options_.recomputing) ||
        !context.skips) {
      object(Oracle::kError, "a segment's function finds another context");
    }
    if (state_.random != options_.random) {
      object(Oracle::kError, "random numbers are kept, or not, as nobody asked");
    }
  }

  CoreCheckpointOptions options() {
    CoreCheckpointOptions options;
    options.early_stop = shape_.early_stop != options_.overridden;
    options.debug = shape_.debug != options_.overridden;
    options.preserve_rng_state = options_.random;
    if (options_.scoped) options.context_fn = [this] { return scopes(); };
    if (!shape_.compares) options.determinism_check = DeterminismCheck::kNone;
    if (!options_.planned) options.choices = chosen_;
    return options;
  }

  void forward() {
    sim::Tensor input = make(0, 4096);
    CheckpointContext context;
    context.recomputing = options_.recomputing;
    if (options_.planned) {
      SegmentPlan plan;
      plan.segments.emplace_back().choices = chosen_;
      plan.segments.back().packs = shape_.packs + (options_.misplanned ? 1 : 0);
      context.plan =
          std::make_shared<PlannedSegments>(std::make_shared<const SegmentPlan>(std::move(plan)));
    }
    std::weak_ptr<ExecGroup> group;
    if (options_.grouped) {
      context.group = std::make_shared<ExecGroup>();
      group = context.group;
    }
    if (options_.overridden) {
      context.early_stop = shape_.early_stop;
      context.debug = shape_.debug;
    }
    {
      const CheckpointContextGuard<HandAutograd> guard(autograd_, std::move(context));
      std::optional<HooksGuard<HandAutograd>> hooks;
      if (options_.around) hooks.emplace(autograd_, around_);
      checkpointer_.run(
          {std::move(input)}, options(), [this](const std::vector<Tensor>& in) { run_again(in); },
          [this](const std::vector<Tensor>& in) { run_first(in); });
    }
    if (!group.expired()) object(Oracle::kLeak, "a segment keeps a group of backwards alive");
    model_->complete();
    done_ = true;
    judge_alive(0);
  }

  // `aside` is on the segment's stream, and read on the others. The function drops it once it has
  // waited for these.
  Tensor begin(const std::vector<Tensor>& in) { return make(0, 512, in.at(0)); }
  void end() {
    for (std::uint32_t stream = 1; stream < kStreams; ++stream) wait(stream, 0);
  }
  Tensor make_saved(std::size_t ordinal, const Tensor& aside, std::int64_t bytes) {
    if (state_.ops) state_.ops->push_back(hand_op(ordinal, bytes != hand_bytes(ordinal)));
    const std::uint32_t stream = ordinal < shape_.packs ? shape_.streams[ordinal] : 0;
    if (stream != 0) wait(0, stream);
    return make(stream, bytes, aside);
  }

  void run_first(const std::vector<Tensor>& in) {
    judge_context(false);
    const Tensor aside = begin(in);
    for (std::size_t i = 0; i < shape_.packs; ++i) {
      if (draws_.one_in(3) && !options_.grouped) step();
      const Tensor tensor = make_saved(i, aside, hand_bytes(i));
      versions_.push_back(tensor->version);
      save(i, tensor, saves_);
      model_->packed();
    }
    if (draws_.one_in(3) && !options_.grouped) step();
    end();
  }

  // As the drawn deviation is.
  void run_again(const std::vector<Tensor>& in) {
    judge_context(true);
    Saves again;
    const Tensor aside = begin(in);
    std::size_t saves = shape_.packs;
    if (shape_.deviation == Deviation::kFewer) --saves;
    if (shape_.deviation == Deviation::kMore) ++saves;
    for (std::size_t i = 0; i < saves; ++i) {
      const bool here = i == shape_.place;
      if (here && shape_.deviation == Deviation::kRaises) {
        end();
        throw std::runtime_error(kHandRaises);
      }
      const bool other = here && shape_.deviation == Deviation::kOtherSize;
      ++made_;
      const Tensor tensor = make_saved(i, aside, (other ? 2 : 1) * hand_bytes(i));
      if (shape_.deviation < Deviation::kMore || shape_.deviation == Deviation::kRaises) {
        save(i, tensor, again);
      } else if (!save_deviating(i, tensor, aside, again)) {
        return;
      }
    }
    end();
  }
  // False if the function returns.
  bool save_deviating(std::size_t ordinal, const Tensor& tensor, const Tensor& aside,
                      Saves& again) {
    try {
      save(ordinal, tensor, again);
      return true;
    } catch (const CheckpointError&) {
      end();
      throw;
    } catch (const std::exception&) {
      if (shape_.deviation == Deviation::kReturns) return false;
      if (shape_.deviation == Deviation::kOwnError) throw std::runtime_error("an interpreter's");
      if (shape_.deviation != Deviation::kGoesOn) throw;
    }
    ++made_;
    const Tensor more = make_saved(ordinal, aside, hand_bytes(ordinal));
    end();
    save(ordinal, more, again);
    return true;
  }
  void save(std::size_t ordinal, const Tensor& tensor, Saves& into) {
    const std::uint32_t stream = ordinal < shape_.packs ? shape_.streams[ordinal] : 0;
    const sim::SimDevice::StreamScope on(device(), stream_of(stream));
    into.push_back(autograd_.hooks().pack(tensor));
    if (!into.back()) object(Oracle::kError, "a segment's hooks let go of a saved tensor");
  }

  void step() {
    if (steps_ <= 0 || !wrong_.words.empty()) return;
    --steps_;
    const int what = draws_.in(0, 12);
    const std::size_t packs = model_->packs();
    const auto ordinal =
        static_cast<std::size_t>(draws_.in(0, static_cast<int>(packs > 0 ? packs : 1)));
    const Unpacker who{draws_.in(-1, HandTasks::kPlaces), draws_.few(4, 3) - 1, draws_.few(4, 2),
                       static_cast<std::uint32_t>(draws_.few(6, kStreams))};
    if (what == 0) {
      end_task(draws_.in(0, HandTasks::kPlaces));
    } else if (what == 1) {
      end_group(draws_.in(0, kGroups));
    } else if (what == 2 && shape_.place < packs) {
      drop(shape_.place);  // where recomputes may deviate
    } else if (packs == 0 || !saves_[ordinal]) {
      return;
    } else if (what == 2 || what == 4) {
      drop(ordinal);
    } else if (what == 3) {
      ++versions_[ordinal]->value;
      model_->write(ordinal);
    } else {
      unpack(ordinal, who);
    }
    judge_alive(done_ ? 0 : 1);
  }
  void end_task(int place) {
    const auto task = static_cast<std::int64_t>(state_.tasks.at(place));
    state_.tasks.end(place);
    model_->task_ended(task);
  }
  void end_group(int place) {
    if (!groups_[static_cast<std::size_t>(place)]) return;
    const std::int64_t id = groups_[static_cast<std::size_t>(place)]->id();
    groups_[static_cast<std::size_t>(place)].reset();
    model_->group_ended(id);
  }
  void drop(std::size_t ordinal) {
    if (!saves_[ordinal]) return;
    saves_[ordinal].reset();
    model_->drop(ordinal);
  }

  void unpack(std::size_t ordinal, const Unpacker& who) {
    const auto thread = static_cast<ThreadId>(who.thread);
    state_.task = who.task < 0 ? GraphTaskId::kNone : state_.tasks.at(who.task);
    const ThreadId before = std::exchange(state_.thread, thread);
    SegmentResults::Whom whom{-1, who.task < 0 ? -1 : static_cast<std::int64_t>(state_.task),
                              who.thread};
    std::optional<ExecGroupGuard<HandAutograd>> guard;
    if (who.group >= 0) {
      auto& group = groups_[static_cast<std::size_t>(who.group)];
      if (!group) group = std::make_shared<ExecGroup>();
      whom.group = group->id();
      guard.emplace(autograd_, group);
    }
    const std::string must = model_->unpack(ordinal, whom, who.stream);
    if (shape_.fates[ordinal] == SavedChoice::kOffload) ++passed_unpacked_;
    std::string is;
    const sim::SimDevice::StreamScope on(device(), machine_.compute_stream(who.stream));
    try {
      const Tensor tensor = saves_[ordinal]->unpack();
      const bool again = model_->is_recomputed(ordinal);
      const bool other = shape_.deviation == Deviation::kOtherSize && ordinal == shape_.place;
      if (again && ordinal != shape_.elsewhere) read(tensor);
      if (tensor->storage->bytes != (again && other ? 2 : 1) * hand_bytes(ordinal)) {
        object(Oracle::kValue, "another tensor came back than was saved");
      }
    } catch (const std::exception& error) {
      is = error.what();
    }
    guard.reset();
    state_.task = GraphTaskId::kNone;
    state_.thread = before;
    if (is != must) {
      object(oracle_of_errors(is, must), "saved tensor " + std::to_string(ordinal) +
                                             " of a segment: \"" + is + "\", not \"" + must + "\"");
    }
  }

  void judge_alive(std::int64_t beside) {
    const std::int64_t must = model_->alive() + beside;
    if (machine_.live_storages() == must) return;
    object(Oracle::kLeak, "a segment and autograd have " +
                              std::to_string(machine_.live_storages()) + " storages, not " +
                              std::to_string(must));
  }
  void judge_counts() {
    const CheckpointStatistics must = model_->counted();
    const CheckpointStatistics is = checkpointer_.statistics();
    const auto differs = [&](std::int64_t CheckpointStatistics::*what, const char* name) {
      if (is.*what == must.*what) return;
      object(Oracle::kCount, "a segment counts " + std::to_string(is.*what) + " " + name +
                                 ", not " + std::to_string(must.*what));
    };
    differs(&CheckpointStatistics::segments, "segments");
    differs(&CheckpointStatistics::recomputes, "recomputes");
    differs(&CheckpointStatistics::stopped_early, "recomputes stopped early");
    differs(&CheckpointStatistics::saved, "saved");
    differs(&CheckpointStatistics::kept, "kept");
    differs(&CheckpointStatistics::passed_on, "passed on");
    const std::int64_t offloads = std::count(chosen_.begin(), chosen_.end(), SavedChoice::kOffload);
    const std::int64_t packs = 1 + (options_.recomputing ? 0 : offloads);
    if (options_.around && around_->packs != packs) {
      object(Oracle::kCount, "the hooks around a segment are given " +
                                 std::to_string(around_->packs) + " tensors, not " +
                                 std::to_string(packs));
    }
    const std::int64_t unpacks = options_.declines ? 0 : must.recomputes + passed_unpacked_;
    if (options_.around && around_->unpacks != unpacks) {
      object(Oracle::kCount, "the hooks around a segment give back " +
                                 std::to_string(around_->unpacks) + " tensors, not " +
                                 std::to_string(unpacks));
    }
    if (made_ != model_->tensors_made()) {
      object(Oracle::kCount, "recomputes of a segment made " + std::to_string(made_) +
                                 " tensors, not " + std::to_string(model_->tensors_made()));
    }
    if (recomputed_.waits != model_->waits()) {
      object(Oracle::kMoves, "streams wait " + std::to_string(recomputed_.waits) +
                                 " times for what a segment makes again, not " +
                                 std::to_string(model_->waits()));
    }
    if (state_.captured != 1) object(Oracle::kCount, "forward's state is not looked at once");
  }

  sim::SimDevice device() { return sim::SimDevice(machine_); }
  void wait(std::uint32_t from, std::uint32_t to) {
    machine_.wait(Step::kUser, stream_of(to), machine_.record(Step::kUser, stream_of(from)));
  }
  // 0: the stream on which the function runs.
  StreamId stream_of(std::uint32_t stream) {
    return stream == 0 ? machine_.current_stream() : machine_.compute_stream(stream);
  }
  // Made on the stream, of what is read there.
  Tensor make(std::uint32_t stream, std::int64_t bytes, const Tensor& of = nullptr) {
    const sim::SimDevice::StreamScope on(device(), stream_of(stream));
    Tensor made = new_tensor(machine_, bytes);
    const Range to = sim::range_of(made);
    const Range from = of ? sim::range_of(of) : Range{};
    machine_.kernel("make", ++kernels_, {&from, of ? 1u : 0u}, {&to, 1}, 1);
    return made;
  }
  void read(const Tensor& tensor) {
    const Range range = sim::range_of(tensor);
    machine_.kernel("use", ++kernels_, {&range, 1}, {}, 1);
  }
  void object(Oracle oracle, std::string words) {
    if (wrong_.words.empty()) wrong_ = {oracle, std::move(words)};
  }

  static constexpr int kGroups = 2;
  Draws draws_;
  int steps_;
  Options options_;
  SegmentShape shape_;
  std::vector<SavedChoice> chosen_;  // by ordinal
  sim::Checkers checkers_{sim::Checks::kAll, {.reuse_at_free = true}};
  VainWaits waits_;
  Waits recomputed_;
  sim::Machine machine_;
  std::uint64_t kernels_ = 0;
  HandState state_;
  HandAutograd autograd_{state_};
  std::shared_ptr<HandHooks> around_;
  std::int64_t elsewhere_ = 0;  // bytes
  Checkpointer<SegmentDevice, HandAutograd> checkpointer_;
  std::optional<SegmentResults> model_;
  std::array<std::shared_ptr<ExecGroup>, kGroups> groups_;
  Saves saves_;
  std::vector<sim::Version> versions_;
  std::int64_t made_ = 0;  // by recomputes
  std::int64_t passed_unpacked_ = 0;
  bool done_ = false;    // forward
  std::string refused_;  // why its call was; empty: it was not
  Scope in_scope_ = Scope::kNone;
  Verdict wrong_;
};

}  // namespace

std::optional<Verdict> try_segment_script(const DrawnUses& uses, const Rules& rules,
                                          StreamOpConsumer* watch) {
  return SegmentScript(uses, rules, watch).run();
}

}  // namespace ferry::verify
