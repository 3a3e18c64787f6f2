// What travels with the hook stack: groups and those whom they tell, and plans of segments.
#include "shared/seam/checkpoint_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/shared/seam/slot.h"

namespace ferry {
namespace {

using test::Slot;

TEST(ExecGroupTest, AtItsEndItTellsEach) {
  const auto owner = std::make_shared<int>(0);
  int told = 0;
  {
    ExecGroup group;
    for (int i = 0; i < 100; ++i) group.at_end(owner, [&told] { ++told; });
    EXPECT_EQ(told, 0);
  }
  EXPECT_EQ(told, 100);
}

// A group may serve a whole training: what its callbacks hold is bounded by who is alive.
TEST(ExecGroupTest, TheDeadAreForgotten) {
  ExecGroup group;
  const auto held = std::make_shared<int>(0);
  for (int i = 0; i < 1000; ++i) group.at_end(std::make_shared<int>(i), [held] {});
  EXPECT_LT(held.use_count(), 40);
}

// Not at every call, which would look at all the living; and no later.
TEST(ExecGroupTest, TheDeadAreForgottenWhenTheyAreSixteenMoreThanTheLiving) {
  for (const long living : {0, 1, 100}) {
    ExecGroup group;
    const auto owner = std::make_shared<int>(0);
    const auto held = std::make_shared<int>(0);
    for (long i = 0; i < living; ++i) group.at_end(owner, [] {});
    long most = 0;
    for (int i = 0; i < 1000; ++i) {
      group.at_end(std::make_shared<int>(i), [held] {});
      most = std::max(most, held.use_count() - 1);
    }
    EXPECT_EQ(most, living + 16);
  }
}

// Among owners of which most are dead before the next one asks.
TEST(ExecGroupTest, TheLivingAreToldOnceWhoeverIsForgotten) {
  for (const int every : {1, 3, 16, 64}) {
    std::vector<std::shared_ptr<int>> living;
    std::vector<int> told(64);
    {
      ExecGroup group;
      for (int i = 0; i < 64; ++i) {
        const auto owner = std::make_shared<int>(i);
        group.at_end(owner, [&count = told[static_cast<std::size_t>(i)]] { ++count; });
        if (i % every == 0) living.push_back(owner);
      }
    }
    for (const auto& owner : living) EXPECT_EQ(told[static_cast<std::size_t>(*owner)], 1) << *owner;
  }
}

TEST(ExecGroupTest, SeveralThreadsMayAskAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 20'000;
  const auto owner = std::make_shared<int>(0);
  std::atomic<int> ready = 0;
  std::atomic<int> told = 0;
  {
    ExecGroup group;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        for (int each = 0; each < kEach; ++each) group.at_end(owner, [&told] { ++told; });
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(told, kThreads * kEach);
}

TEST(ExecGroupTest, EachHasANumberOfItsOwn) {
  const ExecGroup one;
  const ExecGroup other;
  const ExecGroup third;
  EXPECT_NE(one.id(), other.id());
  EXPECT_NE(one.id(), third.id());
  EXPECT_NE(other.id(), third.id());
}

TEST(CheckpointContextTest, IsOfNoSegmentAndHasNoGuardsUnlessItSaysSo) {
  const CheckpointContext context;
  EXPECT_FALSE(context.checkpointing);
  EXPECT_FALSE(context.recomputing);
  EXPECT_FALSE(context.early_stop);
  EXPECT_FALSE(context.debug);
  EXPECT_EQ(context.group, nullptr);
}

TEST(ExecGroupGuardTest, GroupsDoNotNest) {
  HookStack<Slot::Tensor> stack;
  const auto group = std::make_shared<ExecGroup>();
  const auto inner = std::make_shared<ExecGroup>();
  {
    const ExecGroupGuard<Slot> guard(Slot{&stack}, group);
    EXPECT_EQ(checkpoint_context(stack).group, group);
    try {
      const ExecGroupGuard<Slot> nested(Slot{&stack}, inner);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "GraphExecGroup contexts cannot be nested. Already inside group " +
                    std::to_string(group->id()));
    }
    EXPECT_EQ(checkpoint_context(stack).group, group);
  }
  EXPECT_EQ(checkpoint_context(stack).group, nullptr);
  const ExecGroupGuard<Slot> again(Slot{&stack}, group);
  EXPECT_EQ(checkpoint_context(stack).group, group) << "a group may be entered again";
}

TEST(PlannedSegmentsTest, CallsThatAClosedPlanDoesNotListRunPlain) {
  SegmentPlan plan = SegmentPlan::closed();
  plan.segments = {SegmentPlan()};
  PlannedSegments segments(std::make_shared<const SegmentPlan>(plan));
  EXPECT_TRUE(segments.next()->checkpoint);
  for (int i = 0; i < 2; ++i) {
    const auto unlisted = segments.next();
    ASSERT_TRUE(unlisted);
    EXPECT_FALSE(unlisted->checkpoint);
    EXPECT_FALSE(unlisted->unlisted) << "nor is what they call";
  }
}

TEST(PlannedSegmentsTest, AreGivenInCallingOrder) {
  SegmentPlan plan;
  plan.segments = {SegmentPlan::closed(false), SegmentPlan::closed(true)};
  PlannedSegments segments(std::make_shared<const SegmentPlan>(plan));
  EXPECT_FALSE(segments.next()->checkpoint);
  EXPECT_TRUE(segments.next()->checkpoint);
  EXPECT_EQ(segments.next(), nullptr) << "the call's own options decide";
}

TEST(NumberedSegmentTest, SaysItsRunAndItsPlaceThere) {
  std::vector<Decision> log;
  const auto run =
      std::make_shared<CheckpointRun>(7, [&](const Decision& each) { log.push_back(each); });
  const NumberedSegment first(run);
  const NumberedSegment second(run);
  second.recomputes();
  first.recomputes();
  second.recomputes();
  NumberedSegment(nullptr).recomputes();
  NumberedSegment(std::make_shared<CheckpointRun>(7, nullptr)).recomputes();
  EXPECT_EQ(log, (std::vector<Decision>{{DecisionKind::kRecompute, 7, 1, 0},
                                        {DecisionKind::kRecompute, 7, 0, 0},
                                        {DecisionKind::kRecompute, 7, 1, 0}}));
}

}  // namespace
}  // namespace ferry
