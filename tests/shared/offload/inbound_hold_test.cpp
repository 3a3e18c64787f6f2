// Reloaded storages that are held for further saves, and how they are given up.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::Back;
using test::back;
using test::kBytes;
using test::kKiB;
using test::kTask;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;
using Text = std::vector<std::string>;

CoreOptions holding(std::int64_t bytes, ReloadPool pool = ReloadPool::kConsumer) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = bytes;
  options.reload_pool = pool;
  return options;
}

// Sends a tensor of each size, unpacks the first of two saves of each, the last packed first, and
// says which are held then.
Back held(std::int64_t bound, const std::vector<std::int64_t>& sizes) {
  Parts parts(holding(bound));
  std::vector<ParcelRef> parcels;
  for (const std::int64_t bytes : sizes) parcels.push_back(parts.send(parts.world.make(bytes)));
  parts.evict();
  parts.inbound.begin_task(kTask, sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    parcels[i]->saves = 2;
    parts.run_node(parcels[i], kTask);
  }
  return back(parcels);
}

TEST(InboundHold, OneStorageLargerThanTheBoundIsHeldHoweverSmallTheBound) {
  EXPECT_EQ(held(0, {kBytes}), Back{false});
  EXPECT_EQ(held(1, {kBytes}), Back{true});
  EXPECT_EQ(held(1, {kBytes, 2 * kBytes}), (Back{true, false}));
}

TEST(InboundHold, AStorageAsLargeAsTheBoundIsWithinIt) {
  EXPECT_EQ(held(kBytes, {kBytes, kKiB}), (Back{true, false})) << "nothing else is";
  EXPECT_EQ(held(kBytes, {kBytes, kBytes + 1}), (Back{true, true})) << "a larger one is beside it";
}

TEST(InboundHold, WhatWasHeldBesideTheBoundLeavesNoRoomBehind) {
  Parts parts(holding(kBytes));
  std::vector<ParcelRef> parcels = parts.away(3);
  parcels.push_back(parts.send(parts.world.make(2 * kBytes)));
  parts.evict();
  parts.inbound.begin_task(kTask, 4);
  for (const ParcelRef& parcel : parcels) parcel->saves = 2;
  for (int i = 0; i < 2; ++i) parts.run_node(parcels[3], kTask);
  for (std::size_t i = 3; i-- > 0;) parts.run_node(parcels[i], kTask);
  EXPECT_EQ(back(parcels), (Back{true, false, false, false}));
}

// The copy stream does not wait for the node that it feeds.
TEST(InboundHold, WhatANodeCrowdsOutIsReleasedAtTheEndOfThatNode) {
  Parts parts(holding(kBytes, ReloadPool::kCopyStream));
  const std::vector<ParcelRef> parcels = parts.away(2);
  for (const ParcelRef& parcel : parcels) parcel->saves = 2;
  parts.inbound.begin_task(kTask, 2);
  parts.run_node(parcels[1], kTask);
  constexpr NodeId kNext{99};
  Tensor x = parts.hand_out(parcels[0], kTask, kNext);
  EXPECT_EQ(back(parcels), (Back{true, false}));
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 0);
  x.reset();
  parts.end_node(kTask, kNext);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 1);
  EXPECT_EQ(parts.live_storages(), 1);
}

TEST(InboundHold, AHeldTargetThatASecondStreamCannotWaitForIsGivenUpAtOnce) {
  Parts parts(holding(kBytes, ReloadPool::kCopyStream));
  std::vector<ParcelRef> parcels = parts.away(1);
  parcels[0]->saves = 2;
  parts.inbound.begin_task(kTask, 1);
  parts.run_node(parcels[0], kTask);
  parts.compute_on(1);
  parts.fails = Step::kConsume;
  EXPECT_THROW(parts.bring(parcels[0]), InjectedFault);
  EXPECT_EQ(back(parcels), Back{false});
  EXPECT_EQ(parts.live_storages(), 0);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 1);
  EXPECT_EQ(parts.run_node(parcels[0], kTask), parts.contents[0]) << "and may be tried again";
  parts.end_task(kTask);
  parts.end(parcels);
  parts.expect_clean();
}

// Such as a later save of the same tensor, which finds its source still there.
TEST(InboundHold, WhoeverHasItWhenItIsGivenUpMayUseItLater) {
  const auto hazards = [](const Mutant& mutant) {
    Parts parts(holding(kBytes, ReloadPool::kCopyStream), mutant);
    const std::vector<ParcelRef> parcels = parts.away(2);
    parcels[0]->saves = 2;
    parts.inbound.begin_task(kTask, 2);
    parts.run_node(parcels[0], kTask);
    Tensor found = parts.tensor(parcels[0], parcels[0]->target);
    parts.end_task(kTask);
    EXPECT_EQ(back(parcels), (Back{false, false}));
    parts.world.use(found);
    found.reset();
    parts.bring(parcels[1]);  // may be given the block
    return parts.world.hazards();
  };
  EXPECT_EQ(hazards({}), Text{});
  EXPECT_FALSE(hazards(without(Rule::kCountEscapes)).empty());
}

TEST(InboundHold, WhatIsDueInACancelledTaskIsReleasedAtOnce) {
  Parts parts(holding(0, ReloadPool::kCopyStream));
  std::vector<ParcelRef> parcels = parts.away(2);
  parts.inbound.begin_task(kTask, 2);
  parts.run_node(parcels[1], kTask);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 0) << "it waits for the next node";
  parts.cancel_task(kTask);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 1);
  parts.run_node(parcels[0], kTask);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 2) << "nothing waits for a task without an end";
  parts.end(parcels);
  parts.expect_clean();
}

TEST(InboundHold, ACancelledTaskThatIsBegunAgainHasItsEndAnnounced) {
  Parts parts(holding(kBytes));
  EXPECT_TRUE(parts.inbound.begin_task(kTask, 0));
  EXPECT_FALSE(parts.inbound.begin_task(kTask, 0));
  parts.cancel_task(kTask);
  EXPECT_TRUE(parts.inbound.begin_task(kTask, 0));
}

// A node that another thread runs meanwhile is using its target.
TEST(InboundHold, ANodeThatACancelledTaskRunsKeepsWhatItUses) {
  Parts parts(holding(0, ReloadPool::kCopyStream));
  std::vector<ParcelRef> parcels = parts.away(1);
  parts.inbound.begin_task(kTask, 1);
  constexpr NodeId kNode{99};
  Tensor x = parts.hand_out(parcels[0], kTask, kNode);
  parts.cancel_task(kTask);
  parts.world.use(x);
  EXPECT_EQ(parts.world.contents(x), parts.contents[0]);
  x.reset();
  EXPECT_EQ(parts.live_storages(), 1);
  parts.end_node(kTask, kNode);
  EXPECT_EQ(parts.live_storages(), 0);
  parts.end(parcels);
  parts.expect_clean();
}

// The end of such a task will not come; another thread of it may have unpacked by then.
TEST(InboundHold, WhatACancelledTaskHasHeldGoesAtOnceAndNothingMoreIsHeld) {
  for (const std::int64_t bound : {kBytes, std::int64_t{1}}) {
    Parts parts(holding(bound));
    std::vector<ParcelRef> parcels = parts.away(1);
    parcels[0]->saves = 2;
    parts.inbound.begin_task(kTask, 1);
    parts.run_node(parcels[0], kTask);
    EXPECT_FALSE(parts.inbound.empty());
    parts.cancel_task(kTask);
    EXPECT_TRUE(parts.inbound.empty());
    EXPECT_EQ(back(parcels), Back{false});
    parts.run_node(parcels[0], kTask);
    EXPECT_EQ(back(parcels), Back{false});
    EXPECT_TRUE(parts.inbound.empty());
    parts.end(parcels);
    parts.expect_clean();
  }
}

}  // namespace
}  // namespace ferry
