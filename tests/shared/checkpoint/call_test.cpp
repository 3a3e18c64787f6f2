// What a checkpointed function finds where it runs, and what its call leaves behind. It is the same
// in both variants.
#include "shared/checkpoint/call.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/shared/checkpoint/told.h"

namespace ferry {
namespace {

using test::ContextGuard;
using test::ToldAutograd;
using test::ToldRig;
using test::Values;

class CheckpointCallTest : public ::testing::TestWithParam<bool> {
 protected:
  // A segment of one layer.
  Values call(const Values& in) {
    return rig.call(GetParam(), in, [this](Values at) {
      const CheckpointContext now = rig.here();
      ran.emplace_back(now.checkpointing, now.recomputing);
      return Values{rig.layer("layer", at[0])};
    });
  }

  ToldRig rig;
  std::vector<std::pair<bool, bool>> ran;
};

TEST_P(CheckpointCallTest, AFunctionFindsIfItRunsForTheFirstTimeOrAgain) {
  const Values out = call({rig.rig.leaf()});
  EXPECT_EQ(ran, (std::vector{std::pair(true, false)}));
  rig.rig.backward(out);
  EXPECT_EQ(ran, (std::vector{std::pair(true, false), std::pair(false, true)}));
  EXPECT_FALSE(rig.here().checkpointing);
  EXPECT_FALSE(rig.here().recomputing);
}

TEST_P(CheckpointCallTest, WhereTheStateCouldNotBeCapturedForwardFails) {
  rig.told.captured = false;
  EXPECT_THROW(call({rig.rig.leaf()}), std::runtime_error);
  EXPECT_EQ(ran.size(), 1u);
  EXPECT_TRUE(rig.checkpointer.empty());
  rig.told.captured = true;
  rig.rig.backward(call({rig.rig.leaf()}));
}

TEST_P(CheckpointCallTest, EachRecomputeIsCountedAndLogged) {
  std::vector<Decision> log;
  CheckpointContext context;
  context.run = std::make_shared<CheckpointRun>(
      5, [&log](const Decision& decision) { log.push_back(decision); });
  Values x{rig.rig.leaf()};
  {
    const ContextGuard guard(rig.autograd, std::move(context));
    for (int i = 0; i < 3; ++i) x = call(x);
  }
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(rig.statistics().recomputes, 0);
  rig.rig.backward(x);
  std::vector<Decision> last_first;
  for (const std::uint64_t segment : {2u, 1u, 0u}) {
    last_first.push_back({DecisionKind::kRecompute, 5, segment, 0});
  }
  EXPECT_EQ(log, last_first);
  EXPECT_EQ(rig.statistics().recomputes, 3);
}

// A group ends with its last reference, and with it what its backwards recomputed: what was called
// within it does not prolong that.
TEST_P(CheckpointCallTest, ItKeepsNoGroup) {
  auto group = std::make_shared<ExecGroup>();
  const std::weak_ptr<ExecGroup> kept = group;
  Values out;
  {
    const ExecGroupGuard<ToldAutograd> guard(rig.autograd, std::move(group));
    out = call({rig.rig.leaf()});
  }
  EXPECT_FALSE(rig.checkpointer.empty());
  EXPECT_TRUE(kept.expired());
}

INSTANTIATE_TEST_SUITE_P(Variants, CheckpointCallTest, ::testing::Bool(),
                         [](const auto& reentrant) {
                           return reentrant.param ? "reentrant" : "usual";
                         });

}  // namespace
}  // namespace ferry
