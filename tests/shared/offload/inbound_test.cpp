#include "shared/offload/inbound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::Back;
using test::back;
using test::dropping;
using test::kBytes;
using test::kTask;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;
using TargetRef = Parts::TargetRef;
using Text = std::vector<std::string>;

CoreOptions options(ReloadPool pool, std::int64_t prefetch_bytes = 0, std::int64_t hold_bytes = 0) {
  CoreOptions options = test::eager_options();
  options.reload_pool = pool;
  options.prefetch_bytes = prefetch_bytes;
  options.hold_bytes = hold_bytes;
  return options;
}
constexpr ReloadPool kPools[] = {ReloadPool::kConsumer, ReloadPool::kCopyStream};

TEST(InboundTest, AReloadFollowsItsOwnOffloadAndItsConsumerFollowsTheReload) {
  const auto hazards = [](ReloadPool pool, const Mutant& mutant) {
    Parts parts(options(pool), mutant);
    std::vector<ParcelRef> parcels = parts.away(1);
    parts.inbound.begin_task(kTask, 1);
    EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]);
    parts.end_task(kTask);
    return parts.world.hazards();
  };
  for (const ReloadPool pool : kPools) {
    EXPECT_EQ(hazards(pool, {}), Text{});
    EXPECT_FALSE(hazards(pool, dropping(Step::kConsume)).empty());
  }
  // In the other pool the copy back waits for the consumer, which has waited for the eviction.
  EXPECT_FALSE(hazards(ReloadPool::kCopyStream, dropping(Step::kReloadAfterOffload)).empty());
}

// The block was another tensor's, which a kernel still reads.
TEST(InboundTest, InTheConsumersPoolACopyWaitsForTheEarlierUsersOfTheBlock) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kConsumer), mutant);
    std::vector<ParcelRef> parcels = parts.away(1);
    Tensor before = parts.world.make(kBytes);
    parts.world.use(before);
    before.reset();
    const TargetRef target = parts.bring(parcels[0]);
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(dropping(Step::kReloadAfterReady)).empty());
}

TEST(InboundTest, PrefetchTakesTheReverseOfPackingWithinItsBoundOfBytes) {
  const auto ahead_of_the_last = [](std::int64_t bytes, const Mutant& mutant = {}) {
    Parts parts(options(ReloadPool::kConsumer, bytes), mutant);
    const std::vector<ParcelRef> parcels = parts.away(4);
    parts.inbound.begin_task(kTask, 4);
    parts.prefetch(parcels[3], kTask);
    return back(parcels);
  };
  EXPECT_EQ(ahead_of_the_last(kBytes - 1), (Back{false, false, false, false}));
  EXPECT_EQ(ahead_of_the_last(kBytes), (Back{false, false, true, false}));
  EXPECT_EQ(ahead_of_the_last(2 * kBytes), (Back{false, true, true, false}));
  EXPECT_EQ(ahead_of_the_last(kUnlimited), (Back{true, true, true, false}));
  EXPECT_EQ(ahead_of_the_last(kBytes, without(Rule::kBoundReloads)),
            (Back{true, true, true, false}));
}

TEST(InboundTest, PrefetchPassesOverWhatWillNotBeReloaded) {
  Parts parts(options(ReloadPool::kConsumer, kUnlimited));
  Tensor written = parts.world.make(kBytes);
  const Tensor alive = parts.world.make(kBytes);
  std::vector<ParcelRef> parcels = parts.away(1);  // of the run before
  ++parts.run;
  parcels.push_back(parts.away(1)[0]);
  parcels.push_back(parts.send(written));
  parcels.push_back(parts.send(alive));
  parts.world.write(written);
  written.reset();
  parcels.push_back(parts.away(1)[0]);
  parts.inbound.begin_task(kTask, 5);
  parts.prefetch(parcels[4], kTask);
  EXPECT_EQ(back(parcels), (Back{false, true, false, false, false}));
}

TEST(InboundTest, APrefetchThatFailsIsNoErrorAndTheReloadComesInItsTime) {
  Parts parts(options(ReloadPool::kConsumer, kUnlimited));
  std::vector<ParcelRef> parcels = parts.away(3);
  parts.inbound.begin_task(kTask, 3);
  parts.fails = Step::kReloadAllocate;
  EXPECT_NO_THROW(parts.prefetch(parcels[2], kTask));
  EXPECT_EQ(back(parcels), (Back{false, false, false})) << "and nothing is begun behind it";
  EXPECT_EQ(parts.run_node(parcels[1], kTask), parts.contents[1]);
  parts.end_task(kTask);
  parts.end(parcels);
  parts.expect_clean();
}

TEST(InboundTest, WhatWasPrefetchedInVainIsDiscardedAtTheEndOfTheTask) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kConsumer, kUnlimited), mutant);
    std::vector<ParcelRef> parcels = parts.away(2);
    parts.inbound.begin_task(kTask, 2);
    parts.prefetch(parcels[1], kTask);
    EXPECT_EQ(back(parcels), (Back{true, false}));
    parts.end_task(kTask);
    EXPECT_EQ(back(parcels), (Back{false, false}));
    EXPECT_TRUE(parts.inbound.empty());
    EXPECT_EQ(parts.live_storages(), 0);
    EXPECT_EQ(parts.context.statistics.vain_bytes, kBytes);
    const Tensor next = parts.world.make(kBytes);  // in the block that is still written
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(dropping(Step::kDiscard)).empty());
}

// A reentrant checkpoint's task looks ahead into the forward around it.
TEST(InboundTest, WhatANestedTaskPrefetchedOfEarlierPacksGoesToTheTaskAroundIt) {
  Parts parts(options(ReloadPool::kConsumer, kUnlimited));
  constexpr GraphTaskId kNested{8};
  std::vector<ParcelRef> parcels = parts.away(1);
  parts.inbound.begin_task(kTask, 1);
  for (const ParcelRef& packed_inside : parts.away(2)) parcels.push_back(packed_inside);
  EXPECT_TRUE(parts.inbound.begin_task(kNested, 1));
  EXPECT_FALSE(parts.inbound.begin_task(kNested, 3)) << "its end is announced once";
  parts.prefetch(parcels[2], kNested);
  EXPECT_EQ(back(parcels), (Back{true, true, false}));
  parts.end_task(kNested);
  EXPECT_EQ(back(parcels), (Back{true, false, false}));
  parts.end_task(kTask);
  EXPECT_EQ(back(parcels), (Back{false, false, false}));
  parts.end(parcels);
  parts.expect_clean();
}

TEST(InboundTest, AHeldTargetServesASecondSave) {
  const auto reloads_of_two_saves = [](ReloadPool pool, const Mutant& mutant = {}) {
    Parts parts(options(pool, 0, kBytes), mutant);
    std::vector<ParcelRef> parcels = parts.away(1);
    parcels[0]->saves = 2;
    parts.inbound.begin_task(kTask, 1);
    EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]);
    EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]);
    EXPECT_EQ(back(parcels), Back{false}) << "no save is left that would need it";
    parts.end_task(kTask);
    parts.end(parcels);
    parts.expect_clean();
    return parts.context.statistics.reloaded_count;
  };
  for (const ReloadPool pool : kPools) {
    EXPECT_EQ(reloads_of_two_saves(pool), 1);
    EXPECT_EQ(reloads_of_two_saves(pool, without(Rule::kShareTarget)), 2);
  }
}

// Backward comes down the order of packing: what was packed last has waited longest.
TEST(InboundTest, TheHoldIsBoundedAndGivesUpWhatWasPackedLast) {
  const auto held = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kConsumer, 0, 2 * kBytes), mutant);
    const std::vector<ParcelRef> parcels = parts.away(3);
    parts.inbound.begin_task(kTask, 3);
    for (std::size_t i = 3; i-- > 0;) {
      parcels[i]->saves = 2;
      parts.run_node(parcels[i], kTask);
    }
    return back(parcels);
  };
  EXPECT_EQ(held({}), (Back{true, true, false}));
  EXPECT_EQ(held(without(Rule::kBoundReloads)), (Back{true, true, true}));
}

TEST(InboundTest, EachStreamWaitsOnceForATargetAndItsPoolForEachOtherStream) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kConsumer, 0, kBytes), mutant);
    std::vector<ParcelRef> parcels = parts.away(1);
    parcels[0]->saves = 4;
    parts.inbound.begin_task(kTask, 1);
    for (const std::uint32_t stream : {0, 1, 0, 1}) {
      parts.compute_on(stream);
      EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]);
    }
    EXPECT_EQ(parts.context.statistics.target_hits, 3);
    parts.end_task(kTask);
    parts.compute_on(0);
    const Tensor next = parts.world.make(kBytes);  // may have the target's block
    return std::pair(parts.made(Step::kConsume), parts.world.hazards());
  };
  EXPECT_EQ(hazards({}), std::pair(std::int64_t{2}, Text{}));
  EXPECT_FALSE(hazards(dropping(Step::kEscaped)).second.empty());
}

// So that the copy stream does not wait for the node that it feeds.
TEST(InboundTest, ATargetOfTheCopyStreamsPoolIsReleasedOneNodeLater) {
  using Releases = std::vector<std::int64_t>;
  const auto releases_by_each_nodes_end = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kCopyStream), mutant);
    const std::vector<ParcelRef> parcels = parts.away(2);
    parts.inbound.begin_task(kTask, 2);
    Releases releases;
    for (const ParcelRef& parcel : parcels) {
      parts.run_node(parcel, kTask);
      releases.push_back(parts.made(Step::kReleaseAfterNode));
    }
    parts.end_task(kTask);
    releases.push_back(parts.made(Step::kReleaseAfterNode));
    EXPECT_EQ(parts.live_storages(), 0);
    return releases;
  };
  EXPECT_EQ(releases_by_each_nodes_end({}), (Releases{0, 1, 2}))
      << "the task's end releases the last";
  EXPECT_EQ(releases_by_each_nodes_end(without(Rule::kReleaseLate)), (Releases{1, 2, 2}));
}

TEST(InboundTest, AReleasedBlockIsNotWrittenUnderTheNodeThatReadsIt) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kCopyStream), mutant);
    const std::vector<ParcelRef> parcels = parts.away(3);
    parts.inbound.begin_task(kTask, 3);
    for (const ParcelRef& parcel : parcels) parts.run_node(parcel, kTask);
    parts.end_task(kTask);
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(dropping(Step::kReleaseAfterNode)).empty());
  EXPECT_FALSE(hazards(without(Rule::kHoldTarget)).empty());
}

// The node's end says nothing of who reads it later.
TEST(InboundTest, ATargetThatEscapesItsNodeIsLeftToItsPool) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(options(ReloadPool::kCopyStream), mutant);
    const std::vector<ParcelRef> parcels = parts.away(4);
    parts.inbound.begin_task(kTask, 4);
    Tensor escaped = parts.hand_out(parcels[3], kTask, NodeId{99});
    parts.end_node(kTask, NodeId{99});
    parts.run_node(parcels[2], kTask);
    parts.run_node(parcels[1], kTask);
    parts.world.use(escaped);
    escaped.reset();
    parts.run_node(parcels[0], kTask);
    parts.end_task(kTask);
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(without(Rule::kCountEscapes)).empty());
}

TEST(InboundTest, AReloadThatFailsLeavesNothingAndMayBeTriedAgain) {
  for (const Step step :
       {Step::kReloadAllocate, Step::kReady, Step::kReloadAfterReady, Step::kReloadAfterOffload,
        Step::kReload, Step::kReloaded, Step::kConsume}) {
    SCOPED_TRACE(name(step));
    Parts parts(options(ReloadPool::kConsumer));
    std::vector<ParcelRef> parcels = parts.away(1);
    parts.inbound.begin_task(kTask, 1);
    parts.fails = step;
    EXPECT_THROW(parts.run_node(parcels[0], kTask), InjectedFault);
    EXPECT_EQ(back(parcels), Back{false});
    EXPECT_EQ(parts.live_storages(), 0);
    parts.world.make(kBytes);  // in the block of what failed, if its pool gives it out
    EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]);
    parts.end_task(kTask);
    parts.end(parcels);
    parts.expect_clean();
  }
}

}  // namespace
}  // namespace ferry
