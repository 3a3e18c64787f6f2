// The changes that are proposed if nothing fits need the memory that planning them gives.
#include "plan/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/program_file.h"
#include "scenarios/programs.h"

namespace ferry::plan {
namespace {

PlanRequest request_of(const Hardware& card, std::vector<Policy> policies) {
  PlanRequest request;
  request.budget_bytes = card.usable_bytes();
  request.policies = std::move(policies);
  request.training = {.optimizer = sim::Optimizer::kAdamW, .steps = 3};
  request.check = false;
  return request;
}

std::int64_t least_of(const Program& program, const Hardware& card, const PlanRequest& request) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const PolicyRow& row : plan(program, card, request).rows) {
    least = std::min(least, row.least_bytes);
  }
  return least;
}

// A training in which the optimizer needs most of the memory.
class WaysTest : public ::testing::Test {
 protected:
  Ways ways() const { return ways_to_fit(program_, card_, request_, least_of_all()); }
  std::int64_t least_of_all() const { return least_of(program_, card_, request_); }
  const Program program_ = load_program(find_program("mixtral-block"));
  const Hardware card_ = find_hardware("rtx3060");
  PlanRequest request_ = request_of(card_, {Policy::kKeep});
};

TEST_F(WaysTest, EachIsOnTopOfThoseBeforeItAndNeedsWhatItsPlanNeeds) {
  const Ways found = ways();
  ASSERT_EQ(found.each.size(), 2U);
  EXPECT_EQ(found.each[0].kind, WayKind::kPolicy);
  EXPECT_EQ(found.each[1].kind, WayKind::kHostState);
  EXPECT_TRUE(found.each[1].fits);
  PlanRequest other = request_of(card_, {Policy::kOffload});
  EXPECT_EQ(least_of(program_, card_, other), found.each[0].least_bytes);
  other.training.state = sim::OptimizerState::kHost;
  EXPECT_EQ(least_of(program_, card_, other), found.each[1].least_bytes);
  ASSERT_TRUE(found.no_state);
  EXPECT_TRUE(found.no_state->fits);
}

TEST_F(WaysTest, OfAStateOnTheHostTheOthersAreOnTop) {
  request_.training.state = sim::OptimizerState::kHostInBackward;
  request_.budget_bytes = 1 << 30;
  PlanRequest other = request_of(card_, {Policy::kOffload});
  other.training.state = sim::OptimizerState::kHostInBackward;
  for (const Way& way : ways().each) {
    if (way.kind == WayKind::kFused) {
      other.training.implementation = sim::OptimizerImplementation::kFused;
    }
    if (way.kind == WayKind::kExpandable) other.alloc_conf.expandable_segments = true;
    EXPECT_NE(way.kind, WayKind::kHostState);
    EXPECT_EQ(least_of(program_, card_, other), way.least_bytes);
  }
}

// Gradients that are clipped must all be there.
TEST_F(WaysTest, AClippedTrainingIsNotUpdatedInBackward) {
  request_.training.clip_grad_norm = true;
  bool on_host = false;
  for (const Way& way : ways().each) {
    EXPECT_NE(way.kind, WayKind::kInBackward);
    on_host |= way.kind == WayKind::kHostState;
  }
  EXPECT_TRUE(on_host);
}

TEST_F(WaysTest, WhatGivesLessThanATwentiethOfWhatIsMissingIsNotNamed) {
  const std::int64_t least = least_of_all();
  const Ways found = ways();
  std::int64_t before = least;
  for (const Way& way : found.each) {
    EXPECT_GE((before - way.least_bytes) * 20, before - request_.budget_bytes);
    before = way.least_bytes;
  }
  request_.budget_bytes = 1 << 20;  // so much is missing that a policy saves too small a part
  for (const Way& way : ways().each) EXPECT_NE(way.kind, WayKind::kPolicy);
}

TEST_F(WaysTest, NothingIsNamedOnTopOfWhatFits) {
  request_.budget_bytes = least_of(program_, card_, request_of(card_, {Policy::kOffload}));
  const Ways found = ways();
  ASSERT_EQ(found.each.size(), 1U);
  EXPECT_TRUE(found.each[0].fits);
}

TEST_F(WaysTest, AWayThatTheTrainingHasTakenIsNotNamed) {
  request_.training.implementation = sim::OptimizerImplementation::kFused;
  request_.training.state = sim::OptimizerState::kHostInBackward;
  request_.alloc_conf.expandable_segments = true;
  for (const Way& way : ways().each) EXPECT_EQ(way.kind, WayKind::kPolicy);
  request_.training.optimizer = sim::Optimizer::kSgd;
  EXPECT_FALSE(ways().no_state);
}

TEST_F(WaysTest, ACardWithRoomIsOneOnWhichItsPlanFits) {
  request_.alloc_conf.equal_blocks = EqualBlocks::kLowestAddress;  // otherwise it saves no memory
  EXPECT_FALSE(fits_on(card_, program_, request_));
  EXPECT_TRUE(fits_on(find_hardware("a10"), program_, request_));
}

// The host cannot pin the offloaded tensors, so saving device memory does not help.
TEST_F(WaysTest, WhereTheHostIsTooSmallThoseThatFitAreNamedAlone) {
  Hardware card = find_hardware("rtx4090");
  card.host_memory_bytes = 0;
  PlanRequest request = request_of(card, {Policy::kOffload});
  const std::int64_t least = least_of(program_, card, request);
  ASSERT_LE(least, request.budget_bytes);
  for (const Way& way : ways_to_fit(program_, card, request, least).each) EXPECT_TRUE(way.fits);
}

// Each change alone, with the fastest of the policies that need no search.
TEST_F(WaysTest, WhatIsFasterTakesTheTimeOfItsPlan) {
  const Program gpt2 = load_program(find_program("gpt2"));
  const Hardware card = find_hardware("rtx4090");
  PlanRequest request = request_of(card, {Policy::kKeep, Policy::kOffload, Policy::kCheckpoint});
  request.budget_bytes = std::int64_t{8500} << 20;
  const sim::Time now = best_row(plan(gpt2, card, request))->simulation.step_ns;
  const std::vector<Way> found = ways_to_speed(gpt2, card, request, now);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, WayKind::kSlicedLoss);
  EXPECT_EQ(found[0].policy, Policy::kKeep);
  EXPECT_EQ(found[1].kind, WayKind::kFused);
  EXPECT_TRUE(ways_to_speed(gpt2, card, request, found[0].step_ns).empty());
  request.training.implementation = sim::OptimizerImplementation::kFused;
  const PlanResult fused = plan(gpt2, card, request);
  EXPECT_EQ(found[1].step_ns, best_row(fused)->simulation.step_ns);
}

TEST_F(WaysTest, TheLeastWayIsThatOfItsPlan) {
  const std::optional<Way> least = least_way(program_, card_, request_);
  ASSERT_TRUE(least);
  EXPECT_EQ(least->least_bytes, least_of(program_, card_, request_of(card_, {Policy::kOffload})));
  EXPECT_EQ(least->fits, least->least_bytes <= request_.budget_bytes);
}

TEST_F(WaysTest, ACardOnWhichKeepFitsIsOne) {
  EXPECT_FALSE(keeps_on(card_, program_, request_));
  const Hardware large = find_hardware("h200");
  const PlanResult keep = plan(program_, large, request_of(large, {Policy::kKeep}));
  EXPECT_EQ(keeps_on(large, program_, request_), keep.rows.front().simulation.step_ns);
}

TEST_F(WaysTest, AStopLeavesNothing) {
  request_.stop = [] { return true; };
  const Ways found = ways_to_fit(program_, card_, request_, std::int64_t{20} << 30);
  EXPECT_TRUE(found.each.empty());
  EXPECT_FALSE(found.no_state);
}

}  // namespace
}  // namespace ferry::plan
