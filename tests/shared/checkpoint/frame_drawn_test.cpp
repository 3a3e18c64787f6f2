// Scripts for one segment: a function that saves some tensors on several streams, and what an
// engine of its own does with them. In drawn places, some of them in forward, it unpacks and drops
// them, in several graph tasks, threads and groups of backwards; recomputes deviate from forward as
// drawn. After each step, what came back, what was refused, and what is alive must be as
// segment_results.h says.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/drawn_segment.h"
#include "tests/shared/checkpoint/hand_world.h"
#include "tests/shared/checkpoint/segment_function.h"
#include "tests/shared/checkpoint/segment_results.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {
namespace {

using choices::Draws;

// What is said to be on another device has a size of its own.
struct SegmentDevice : sim::SimDevice {
  SegmentDevice(sim::Machine& machine, std::int64_t bytes)
      : sim::SimDevice(machine), elsewhere(bytes) {}
  bool on_device(const sim::Tensor& tensor) const { return tensor->storage->bytes != elsewhere; }
  std::int64_t elsewhere;
};

// Counts the waits for what is recomputed.
class WaitsForRecomputed final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kWait && op.step == Step::kUnpackRecomputed) ++waits;
  }
  std::int64_t waits = 0;
};

class SegmentScript {
 public:
  SegmentScript(std::uint64_t number, const Rules& rules, int steps)
      : draws_(number),
        steps_(steps),
        drawn_(draws_),
        checkpointer_(SegmentDevice(world_.machine, drawn_.elsewhere_bytes), world_.autograd,
                      rules) {
    world_.machine.add_consumer(&recomputed_);
  }

  Objection run() {
    try {
      forward();
    } catch (const std::exception& error) {
      refused_ = error.what();
    }
    const std::string must = drawn_.refusal();
    if (refused_ != must) {
      world_.object("error", "a segment's call says \"" + refused_ + "\", not \"" + must + "\"");
    }
    if (!refused_.empty()) steps_ = 0;
    while (steps_ > 0 && world_.is_right()) step();
    if (refused_.empty()) judge_counts();
    for (std::size_t i = 0; i < saves_.size(); ++i) drop(i);
    saves_.clear();
    if (!checkpointer_.empty() || !world_.empty()) {
      world_.object("leak", "something is left of a segment that autograd has dropped");
    }
    return world_.objection();
  }

 private:
  enum class Scope : std::uint8_t { kNone, kFirst, kAgain };

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
    const CheckpointContext context = checkpoint_context(world_.autograd.hooks());
    const Scope scope = !drawn_.scoped ? Scope::kNone : again ? Scope::kAgain : Scope::kFirst;
    if (in_scope_ != scope) world_.object("error", "a segment runs outside of the user's scope");
    if (context.checkpointing == again || context.recomputing != (again || drawn_.recomputing) ||
        !context.skips) {
      world_.object("error", "a segment's function finds another context");
    }
    if (world_.state.random != drawn_.random) {
      world_.object("error", "random numbers are kept, or not, as nobody asked");
    }
  }

  CoreCheckpointOptions options() {
    CoreCheckpointOptions options;
    options.early_stop = drawn_.shape.early_stop != drawn_.overridden;
    options.debug = drawn_.shape.debug != drawn_.overridden;
    options.preserve_rng_state = drawn_.random;
    if (drawn_.scoped) options.context_fn = [this] { return scopes(); };
    if (!drawn_.shape.compares) options.determinism_check = DeterminismCheck::kNone;
    if (!drawn_.planned) options.choices = drawn_.chosen;
    return options;
  }

  void forward() {
    sim::Tensor input = function_.make_input();
    CheckpointContext context;
    context.recomputing = drawn_.recomputing;
    if (drawn_.planned) {
      SegmentPlan plan;
      plan.segments.emplace_back().choices = drawn_.chosen;
      plan.segments.back().packs = drawn_.shape.packs + (drawn_.misplanned ? 1 : 0);
      context.plan =
          std::make_shared<PlannedSegments>(std::make_shared<const SegmentPlan>(std::move(plan)));
    }
    std::weak_ptr<ExecGroup> group;
    if (drawn_.grouped) {
      context.group = std::make_shared<ExecGroup>();
      group = context.group;
    }
    if (drawn_.overridden) {
      context.early_stop = drawn_.shape.early_stop;
      context.debug = drawn_.shape.debug;
    }
    {
      const CheckpointContextGuard<HandAutograd> guard(world_.autograd, std::move(context));
      std::optional<HooksGuard<HandAutograd>> hooks;
      if (drawn_.around) hooks.emplace(world_.autograd, around_);
      checkpointer_.run(
          {std::move(input)}, options(),
          [this](const std::vector<sim::Tensor>& in) { run_again(in.at(0)); },
          [this](const std::vector<sim::Tensor>& in) { run_first(in.at(0)); });
    }
    if (!group.expired()) world_.object("leak", "a segment keeps a group of backwards alive");
    model_.complete();
    done_ = true;
    judge_alive(0);
  }

  void run_first(const sim::Tensor& input) {
    judge_context(false);
    function_.run_first(
        input, saves_, [this] { step_in_forward(); },
        [this](const sim::Tensor& saved) {
          versions_.push_back(saved->version);
          model_.packed();
        });
  }
  void step_in_forward() {
    if (draws_.one_in(3) && !drawn_.grouped) step();
  }
  void run_again(const sim::Tensor& input) {
    judge_context(true);
    function_.run_again(input);
  }

  void step() {
    if (steps_ <= 0 || !world_.is_right()) return;
    --steps_;
    const int what = draws_.in(0, 12);
    const std::size_t packs = model_.packs();
    const auto ordinal =
        static_cast<std::size_t>(draws_.in(0, static_cast<int>(packs > 0 ? packs : 1)));
    const Unpacker who{draws_.in(-1, HandTasks::kPlaces), draws_.few(4, 3) - 1, draws_.few(4, 2),
                       static_cast<std::uint32_t>(draws_.few(6, kSegmentStreams))};
    if (what == 0) {
      end_task(draws_.in(0, HandTasks::kPlaces));
    } else if (what == 1) {
      end_group(draws_.in(0, kGroups));
    } else if (what == 2 && drawn_.shape.place < packs) {
      drop(drawn_.shape.place);  // where recomputes may deviate
    } else if (packs == 0 || !saves_[ordinal]) {
      return;
    } else if (what == 2 || what == 4) {
      drop(ordinal);
    } else if (what == 3) {
      ++versions_[ordinal]->value;
      model_.write(ordinal);
    } else {
      unpack(ordinal, who);
    }
    judge_alive(done_ ? 0 : 1);
  }
  void end_task(int place) {
    const auto task = static_cast<std::int64_t>(world_.state.tasks.at(place));
    world_.state.tasks.end(place);
    model_.task_ended(task);
  }
  void end_group(int place) {
    if (!groups_[static_cast<std::size_t>(place)]) return;
    const std::int64_t id = groups_[static_cast<std::size_t>(place)]->id();
    groups_[static_cast<std::size_t>(place)].reset();
    model_.group_ended(id);
  }
  void drop(std::size_t ordinal) {
    if (!saves_[ordinal]) return;
    saves_[ordinal].reset();
    model_.drop(ordinal);
  }

  void unpack(std::size_t ordinal, const Unpacker& who) {
    const auto thread = static_cast<ThreadId>(who.thread);
    world_.state.task = who.task < 0 ? GraphTaskId::kNone : world_.state.tasks.at(who.task);
    const ThreadId before = std::exchange(world_.state.id, thread);
    SegmentResults::Whom whom{-1, who.task < 0 ? -1 : static_cast<std::int64_t>(world_.state.task),
                              who.thread};
    std::optional<ExecGroupGuard<HandAutograd>> guard;
    if (who.group >= 0) {
      auto& group = groups_[static_cast<std::size_t>(who.group)];
      if (!group) group = std::make_shared<ExecGroup>();
      whom.group = group->id();
      guard.emplace(world_.autograd, group);
    }
    const std::string must = model_.unpack(ordinal, whom, who.stream);
    if (drawn_.shape.fates[ordinal] == SavedChoice::kOffload) ++passed_unpacked_;
    std::string is;
    const sim::SimDevice::StreamScope on(world_.device(),
                                         world_.machine.compute_stream(who.stream));
    try {
      const sim::Tensor tensor = saves_[ordinal]->unpack();
      const bool again = model_.is_recomputed(ordinal);
      const bool other =
          drawn_.shape.deviation == Deviation::kOtherSize && ordinal == drawn_.shape.place;
      if (again && ordinal != drawn_.shape.elsewhere) world_.read(tensor);
      if (tensor->storage->bytes != (again && other ? 2 : 1) * segment_bytes(ordinal)) {
        world_.object("value", "another tensor came back than was saved");
      }
    } catch (const std::exception& error) {
      is = error.what();
    }
    guard.reset();
    world_.state.task = GraphTaskId::kNone;
    world_.state.id = before;
    if (is != must) {
      world_.object("error", "saved tensor " + std::to_string(ordinal) + " of a segment: \"" + is +
                                 "\", not \"" + must + "\"");
    }
  }

  void judge_alive(std::int64_t beside) {
    const std::int64_t must = model_.alive() + beside;
    if (world_.machine.live_storages() == must) return;
    world_.object("leak", "a segment and autograd have " +
                              std::to_string(world_.machine.live_storages()) + " storages, not " +
                              std::to_string(must));
  }
  void judge_counts() {
    const auto judge = [this](const char* who, std::int64_t is, const char* what, std::int64_t must,
                              const char* kind = "count") {
      if (is == must) return;
      world_.object(kind, std::string(who) + " " + std::to_string(is) + " " + what + ", not " +
                              std::to_string(must));
    };
    const CheckpointStatistics must = model_.counted();
    const CheckpointStatistics is = checkpointer_.statistics();
    judge("a segment counts", is.segments, "segments", must.segments);
    judge("a segment counts", is.recomputes, "recomputes", must.recomputes);
    judge("a segment counts", is.stopped_early, "recomputes stopped early", must.stopped_early);
    judge("a segment counts", is.saved, "saved", must.saved);
    judge("a segment counts", is.kept, "kept", must.kept);
    judge("a segment counts", is.passed_on, "passed on", must.passed_on);
    if (drawn_.around) {
      const std::int64_t unpacks = drawn_.declines ? 0 : must.recomputes + passed_unpacked_;
      judge("the hooks around a segment are given", around_->packs, "tensors", drawn_.passed_on());
      judge("the hooks around a segment give back", around_->unpacks, "tensors", unpacks);
    }
    judge("recomputes of a segment made", function_.made_again(), "tensors", model_.tensors_made());
    judge("streams wait", recomputed_.waits, "times for what a segment makes again", model_.waits(),
          "moves");
    judge("forward's state is looked at", world_.state.checks, "times", 1);
  }

  static constexpr int kGroups = 2;
  Draws draws_;
  int steps_;
  const DrawnSegment drawn_;
  WaitsForRecomputed recomputed_;
  HandWorld world_;
  SegmentFunction function_{drawn_, world_};
  const std::shared_ptr<HandHooks> around_ = std::make_shared<HandHooks>(drawn_.declines);
  Checkpointer<SegmentDevice, HandAutograd> checkpointer_;
  SegmentResults model_{drawn_.shape};
  std::array<std::shared_ptr<ExecGroup>, kGroups> groups_;
  SegmentFunction::Saves saves_;
  std::vector<sim::Version> versions_;
  std::int64_t passed_unpacked_ = 0;
  bool done_ = false;    // forward
  std::string refused_;  // why its call was; empty: it was not
  Scope in_scope_ = Scope::kNone;
};

Objection try_segment(std::uint64_t number, const Rules& rules, int steps = kScriptSteps) {
  return SegmentScript(number, rules, steps).run();
}

TEST(FrameDrawn, TheCoreDoesAsTheModelSays) {
  const auto core = [](std::uint64_t number) { return try_segment(number, {}); };
  EXPECT_EQ(first_objection(core, kScripts), "");
}

TEST(FrameDrawn, EachRuleOfSavedTensorsShows) {
  expect_shown(
      kShownBySegments,
      [](std::uint64_t number, const Rules& rules) { return try_segment(number, rules); },
      kScripts);
}

TEST(FrameDrawn, AScriptWithoutStepsHasForwardAlone) {
  EXPECT_EQ(try_segment(7, {}, 0), std::nullopt);
}

}  // namespace
}  // namespace ferry::test
