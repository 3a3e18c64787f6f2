// Calls of checkpointed functions, drawn, under a drawn plan: which of them are checkpoints, and
// what is refused.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"
#include "shared/seam/checkpoint_context.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/ops_rig.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {
namespace {

SegmentPlan draw_planned(choices::Draws& draws, int depth) {
  SegmentPlan plan;
  plan.checkpoint = draws.one_in(2);
  plan.unlisted = draws.one_in(2);
  if (draws.one_in(4)) plan.packs = draws.in(1, 4);
  for (int more = depth > 0 ? draws.in(0, 3) : 0; more > 0; --more) {
    plan.segments.push_back(draw_planned(draws, depth - 1));
  }
  return plan;
}

// Calls as the rules have them: each takes the next segment of the plan around, with grad mode on.
// Beyond them it is a checkpoint where the plan is open, as in a checkpoint that has no plan.
// Without grad mode there is none but the reentrant one, which saves nothing of what is inside.
class PlannedCalls {
 public:
  PlannedCalls(choices::Draws& draws, const SegmentPlan& plan, Rules rules)
      : draws_(draws), plan_(plan), hand_(rules) {}

  std::string complaint() {
    CheckpointContext context;
    context.plan = std::make_shared<PlannedSegments>(std::make_shared<const SegmentPlan>(plan_));
    const CheckpointContextGuard<sim::SimAutograd> guard(hand_.autograd(), context);
    std::size_t next = 0;
    for (int calls = 3; calls > 0; --calls) call(&plan_, next, 1);
    const std::int64_t segments = hand_.checkpointer().statistics().segments;
    if (segments == segments_) return complaint_;
    return std::to_string(segments) + " segments are counted, not " + std::to_string(segments_);
  }

 private:
  // The plan of the next call; null: none. `open`: it is a checkpoint all the same.
  const SegmentPlan* take(const SegmentPlan* around, std::size_t& next, bool& open) const {
    static const SegmentPlan none = SegmentPlan::closed(false);
    open = !around;
    if (!around) return nullptr;
    if (next < around->segments.size()) return &around->segments[next++];
    open = around->unlisted;
    return open ? nullptr : &none;
  }

  void call(const SegmentPlan* around, std::size_t& next, int depth) {
    const bool grad = !draws_.one_in(4);
    const sim::SimAutograd::GradModeScope mode(hand_.autograd(), grad);
    bool open = true;
    const SegmentPlan* const plan = grad ? take(around, next, open) : nullptr;
    const bool reentrant = draws_.one_in(4);
    const bool region = reentrant && (plan ? plan->checkpoint : !grad || open);
    const bool checkpoint = !reentrant && grad && (plan ? plan->checkpoint : open);
    if (region) ++segments_;
    std::size_t* const outer = saves_;
    std::size_t own = 0;
    if (checkpoint) {
      ++segments_;
      if (outer) ++*outer;  // its input
      saves_ = &own;
    }
    const auto function = [&](const std::vector<sim::Value>&) {
      const bool saved = hand_.save(hand_.run_op(0)) != nullptr;
      if (saved != (saves_ != nullptr)) {
        complaint_ = saved ? "a call that should not be is a checkpoint"
                           : "a call that should be is no checkpoint";
      }
      if (saves_) ++*saves_;
      if (depth == 0) return;
      // Without a checkpoint and without a plan of its own, what is around goes on.
      std::size_t inside = 0;
      const bool goes_on = !plan && !checkpoint && !region;
      for (int calls = 2; calls > 0; --calls) {
        call(goes_on ? around : plan, goes_on ? next : inside, depth - 1);
      }
    };
    const auto refused = [&] { return checkpoint && plan && plan->packs && *plan->packs != own; };
    try {
      if (reentrant) {
        hand_.checkpointer().run_reentrant({hand_.input()}, {}, [&](const auto& inputs) {
          function(inputs);
          return inputs;
        });
      } else {
        hand_.checkpointer().run({hand_.input()}, {}, function, function);
      }
      if (refused()) complaint_ = "a segment saves another number of tensors than its plan says";
    } catch (const SegmentMismatch& error) {
      const std::string text = error.what();
      const std::string must = "saved " + std::to_string(own) + " tensors, and the plan in force" +
                               " has " + std::to_string(plan && plan->packs ? *plan->packs : 0);
      if (!refused() || text.find(must) == std::string::npos) complaint_ = "it says: " + text;
    }
    saves_ = outer;
  }

  choices::Draws& draws_;
  const SegmentPlan& plan_;
  OpsRig hand_;
  std::int64_t segments_ = 0;
  std::size_t* saves_ = nullptr;  // how many the innermost checkpoint saves so far
  std::string complaint_;
};

Objection judge_planned_calls(std::uint64_t seed, const Rules& rules) {
  choices::Draws draws(seed);
  const SegmentPlan plan = draw_planned(draws, 2);
  std::string complaint = PlannedCalls(draws, plan, rules).complaint();
  return complaint.empty() ? Objection() : complaint;
}

TEST(CheckpointerPlanDrawn, CallsAreSegmentsWhereThePlanSaysSo) {
  const auto core = [](std::uint64_t seed) { return judge_planned_calls(seed, {}); };
  EXPECT_EQ(first_objection(core), "");
}

TEST(CheckpointerPlanDrawn, TheRuleOfASegmentsInputsShows) {
  expect_shown(kShownByPlans, judge_planned_calls);
}

}  // namespace
}  // namespace ferry::test
