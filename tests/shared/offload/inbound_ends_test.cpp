// The ends of nodes and of graph tasks: what they record, and what they release.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::kTask;
using test::Mutant;
using test::Parts;
using test::without;
using ParcelRef = Parts::ParcelRef;
using TargetRef = Parts::TargetRef;
using Text = std::vector<std::string>;

constexpr GraphTaskId kOther{8};
constexpr NodeId kNode{90}, kNext{91};

CoreOptions copy_pool(std::int64_t hold_bytes = 0) {
  CoreOptions options = test::eager_options();
  options.reload_pool = ReloadPool::kCopyStream;
  options.hold_bytes = hold_bytes;
  return options;
}

TEST(InboundEnds, TheEndOfANodeIsAskedForOnceHoweverManyTargetsItWasHanded) {
  Parts parts(copy_pool());
  const std::vector<ParcelRef> parcels = parts.away(2);
  parts.inbound.begin_task(kTask, 2);
  const TargetRef first = parts.bring(parcels[0]), second = parts.bring(parcels[1]);
  const StreamId consumer = parts.context.current();
  EXPECT_TRUE(parts.inbound.use(first, consumer, kTask, kNode));
  EXPECT_FALSE(parts.inbound.use(second, consumer, kTask, kNode));
  EXPECT_FALSE(parts.inbound.use(first, consumer, kTask, kNode));
  EXPECT_TRUE(parts.inbound.use(first, consumer, kTask, kNext));
}

TEST(InboundEnds, ANodesEndIsRecordedOnceOnEachStreamThatItReadOn) {
  for (const bool on_two : {false, true}) {
    Parts parts(copy_pool());
    std::vector<ParcelRef> parcels = parts.away(3);
    parts.inbound.begin_task(kTask, 3);
    for (const std::uint32_t i : {0, 1, 2}) {
      parts.compute_on(on_two ? i % 2 : 0);
      parts.world.use(parts.hand_out(parcels[i], kTask, kNode));
    }
    parts.end_node(kTask, kNode);
    EXPECT_EQ(parts.made(Step::kNodeDone), on_two ? 2 : 1);
    parts.end_task(kTask);
    parts.end(parcels);
    parts.expect_clean();
  }
}

// A task may be over before one of its nodes is, and a node may have been handed nothing.
TEST(InboundEnds, TheEndOfWhatIsNotKnownChangesNothing) {
  Parts parts(copy_pool(kUnlimited));
  std::vector<ParcelRef> parcels = parts.away(5);
  for (std::size_t i = 0; i < 4; ++i) parcels[i]->saves = 2;
  parts.inbound.begin_task(kTask, 5);
  for (std::size_t i = 0; i < 4; ++i) parts.run_node(parcels[i], kTask);
  parts.run_node(parcels[4], kTask);
  const std::int64_t records = parts.made(Step::kNodeDone);
  for (std::uint64_t node = 0; node < 4; ++node) parts.end_node(kOther, NodeId{node});
  parts.end_node(kTask, kNode);
  parts.end_task(kOther);
  EXPECT_EQ(parts.made(Step::kNodeDone), records);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 0) << "the last node's is due at the next's end";
  EXPECT_EQ(parts.live_storages(), 5);
  parts.end_task(kTask);
  EXPECT_EQ(parts.live_storages(), 0);
  parts.end(parcels);
  parts.expect_clean();
}

TEST(InboundEnds, WhatATaskLeftGoesAtItsEnd) {
  const auto left = [](const Mutant& mutant) {
    Parts parts(copy_pool(kBytes), mutant);
    const std::vector<ParcelRef> parcels = parts.away(1);
    parcels[0]->saves = 2;
    parts.inbound.begin_task(kTask, 1);
    parts.run_node(parcels[0], kTask);
    parts.end_task(kTask);
    return parts.live_storages();
  };
  EXPECT_EQ(left({}), 0);
  EXPECT_EQ(left(without(Rule::kEndOfTask)), 1);
}

// Its end has no event: what an earlier node's end says of the target is out of date.
TEST(InboundEnds, ANodeThatThrewAndCannotBeRecordedIsLeftToThePool) {
  Parts parts(copy_pool(kBytes));
  const std::vector<ParcelRef> parcels = parts.away(2);
  parcels[0]->saves = 2;
  parts.inbound.begin_task(kTask, 2);
  parts.run_node(parcels[0], kTask);
  Tensor x = parts.hand_out(parcels[0], kTask, kNode);
  parts.world.use(x);
  x.reset();
  parts.fails = Step::kNodeDone;
  parts.end_task(kTask);
  EXPECT_EQ(parts.made(Step::kReleaseAfterNode), 0);
  EXPECT_EQ(parts.live_storages(), 0);
  parts.bring(parcels[1]);  // may be given the block
  EXPECT_EQ(parts.world.hazards(), Text{});
}

TEST(InboundEnds, InItsOwnStreamsPoolATargetNeedsNoRecordOfItsUse) {
  Parts parts;
  std::vector<ParcelRef> parcels = parts.away(1);
  parts.inbound.begin_task(kTask, 1);
  parts.run_node(parcels[0], kTask);
  parts.end_task(kTask);
  EXPECT_EQ(parts.made(Step::kEscaped), 0);
  EXPECT_EQ(parts.made(Step::kNodeDone), 0);
  parts.end(parcels);
  parts.expect_clean();
}

}  // namespace
}  // namespace ferry
