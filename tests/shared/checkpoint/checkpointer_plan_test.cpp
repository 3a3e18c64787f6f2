// Which calls are segments: not without grad mode, and not where the plan in force says so.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/shared/checkpoint/told.h"

namespace ferry {
namespace {

using test::ContextGuard;
using test::ToldAutograd;
using test::ToldRig;
using test::Values;

class CheckpointPlanTest : public ::testing::Test {
 protected:
  using GradMode = ToldAutograd::GradModeScope;

  void plan(std::vector<SegmentPlan> segments) {
    SegmentPlan all;
    all.segments = std::move(segments);
    guard_.emplace(rig.autograd, rig.under(std::move(all)));
  }
  Values layer(const Values& in) {
    return rig.run(in, {}, [this](const Values& at) { return Values{rig.layer("layer", at[0])}; });
  }

  ToldRig rig;
  const Values x{rig.rig.leaf()};
  const SegmentPlan plain_ = SegmentPlan::closed(false);
  const SegmentPlan keeps_one_ = [] {
    SegmentPlan plan;
    plan.choices = {SavedChoice::kKeep};
    return plan;
  }();

 private:
  std::optional<ContextGuard> guard_;
};

TEST_F(CheckpointPlanTest, WithoutGradModeACallIsNoSegment) {
  const GradMode off(rig.autograd, false);
  CoreCheckpointOptions options;
  int contexts = 0;
  options.context_fn = [&contexts] {
    ++contexts;
    return CheckpointContexts{};
  };
  const Values out =
      rig.run(x, options, [this](const Values& in) { return Values{rig.layer("layer", in[0])}; });
  EXPECT_TRUE(out.at(0).tensor);
  EXPECT_EQ(rig.statistics().segments, 0);
  EXPECT_EQ(contexts, 0);
}

TEST_F(CheckpointPlanTest, WithoutGradModeACallTakesNothingOfThePlan) {
  plan({keeps_one_});
  {
    const GradMode off(rig.autograd, false);
    layer(x);
    EXPECT_EQ(rig.statistics().kept, 0);
  }
  layer(x);
  EXPECT_EQ(rig.statistics().kept, 1);
}

// The call without grad mode is as if it were not there.
TEST_F(CheckpointPlanTest, ACallWithGradModeInsideOneWithoutTakesThePlansNext) {
  for (const bool planned : {false, true}) {
    if (planned) plan({keeps_one_});
    const GradMode off(rig.autograd, false);
    rig.run(x, {}, [this](const Values& in) {
      const GradMode on(rig.autograd, true);
      return layer(in);
    });
    EXPECT_EQ(rig.statistics().segments, planned ? 2 : 1);
    EXPECT_EQ(rig.statistics().kept, planned ? 1 : 0);
  }
}

TEST_F(CheckpointPlanTest, ThePlanSaysWhetherAReentrantCallIsASegment) {
  plan({plain_, SegmentPlan()});
  for (const int segments : {0, 1}) {
    const Values out = rig.checkpointer.run_reentrant(
        x, {}, [this](const Values& in) { return Values{rig.layer("layer", in[0])}; });
    EXPECT_EQ(rig.statistics().segments, segments);
    rig.rig.backward(out);
    EXPECT_EQ(rig.statistics().recomputes, segments);
  }
}

// Its forward has no graph, so they come with its recompute.
TEST_F(CheckpointPlanTest, CallsInsideAReentrantSegmentFollowThePlan) {
  SegmentPlan reentrant;
  reentrant.segments = {plain_, SegmentPlan()};
  plan({reentrant});
  const Values out =
      rig.checkpointer.run_reentrant(x, {}, [this](const Values& in) { return layer(layer(in)); });
  EXPECT_EQ(rig.statistics().segments, 1);
  rig.rig.backward(out);
  EXPECT_EQ(rig.statistics().segments, 2);
  EXPECT_EQ(rig.statistics().recomputes, 2);
}

TEST_F(CheckpointPlanTest, ACheckpointerIsEmptyWhileNoGraphHasASegment) {
  EXPECT_TRUE(rig.checkpointer.empty());
  for (const bool reentrant : {false, true}) {
    {
      const Values out = rig.call(
          reentrant, x, [this](const Values& in) { return Values{rig.layer("layer", in[0])}; });
      EXPECT_FALSE(rig.checkpointer.empty());
      rig.rig.backward(out, /*retain_graph=*/true);
      EXPECT_FALSE(rig.checkpointer.empty());
    }
    EXPECT_TRUE(rig.checkpointer.empty());
  }
}

}  // namespace
}  // namespace ferry
