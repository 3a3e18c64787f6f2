// Each assertion of the way back is seen to fail: targets, who reads them, and the bytes of each
// kind.
#include "shared/offload/inbound.h"

#include <gtest/gtest.h>

#include "tests/shared/offload/parts.h"

namespace ferry {
namespace {

CoreOptions from_pool(ReloadPool pool) {
  CoreOptions options = test::eager_options();
  options.reload_pool = pool;
  options.prefetch_bytes = kUnlimited;
  options.hold_bytes = test::kBytes;
  return options;
}

class InboundInvariants : public ::testing::Test {
 protected:
  explicit InboundInvariants(ReloadPool pool = ReloadPool::kConsumer) : parts(from_pool(pool)) {
    parts.inbound.begin_task(test::kTask, 2);
  }
  void let_go(const test::Parts::ParcelRef& parcel) {
    Bin<test::Parts::Device> bin;
    parts.inbound.let_go(*parcel, test::kTask, bin);
  }
  void settle(const test::Parts::ParcelRef& parcel) {
    Bin<test::Parts::Device> bin;
    parts.inbound.settle(parcel, test::kTask, bin);
  }
  void use(const test::Parts::TargetRef& target) {
    parts.inbound.use(target, parts.world.stream(0), test::kTask, kNode);
  }

  static constexpr NodeId kNode{1};
  test::Parts parts;
  std::vector<test::Parts::ParcelRef> parcels = parts.away(2);
};

// From the copy stream's pool: the core releases what it brought.
class InboundReleases : public InboundInvariants {
 protected:
  InboundReleases() : InboundInvariants(ReloadPool::kCopyStream) {}
};

TEST_F(InboundInvariants, ATaskIsABackward) {
  EXPECT_DEATH(parts.inbound.begin_task(GraphTaskId::kNone, 0),
               "outside of backward no task begins");
}

TEST_F(InboundInvariants, ATargetIsItsParcels) {
  EXPECT_DEATH(settle(parcels[0]), "a tensor that is handed out lies on a target");
  const auto target = parts.bring(parcels[0]);
  target->bytes += 1;
  EXPECT_DEATH(parts.bring(parcels[0]), "a target has the bytes that its parcel sent");
  parcels[1]->saves = 0;
  EXPECT_DEATH(parts.bring(parcels[1]), "nothing comes back for a parcel that nobody needs");
}

TEST_F(InboundInvariants, ATargetIsDroppedOnceWithItsBytes) {
  const auto target = parts.bring(parcels[0]);
  parts.context.statistics.backward_stash_bytes -= 1;
  EXPECT_DEATH(let_go(parcels[0]), "no more bytes of targets are dropped than came back");
  target->storage = {};
  EXPECT_DEATH(let_go(parcels[0]), "a target is dropped once");
}

TEST_F(InboundInvariants, PrefetchedBytesAreTakenOnce) {
  parts.prefetch(parcels[1], test::kTask);
  ASSERT_TRUE(parcels[0]->target);
  parcels[0]->target->bytes += 1;
  EXPECT_DEATH(let_go(parcels[0]), "no more bytes are taken than were prefetched");
}

TEST_F(InboundInvariants, WhatIsHeldIsALivingParcels) {
  for (const auto& parcel : parcels) parcel->saves = 2;
  parts.hand_out(parcels[1], test::kTask, kNode);
  ASSERT_TRUE(parcels[1]->target);
  parcels[1]->target->bytes += 1;
  EXPECT_DEATH(let_go(parcels[1]), "no more bytes are let go than were held");
  parcels[1]->target->bytes -= 1;
  parcels[1]->sequence += 7;
  EXPECT_DEATH(let_go(parcels[1]), "a held target has its place among the held");
  parcels[1].reset();
  EXPECT_DEATH(parts.hand_out(parcels[0], test::kTask, kNode),
               "no target is held for a parcel that is dead");
}

TEST_F(InboundReleases, AReaderStaysAReader) {
  const auto target = parts.bring(parcels[0]);
  use(target);
  target->readers[0].open = 0;
  EXPECT_DEATH(parts.end_node(test::kTask, kNode), "a node ends its use of a target once");
  target->readers.clear();
  EXPECT_DEATH(parts.end_node(test::kTask, kNode),
               "a target knows its readers until it is released");
  EXPECT_DEATH(use(target), "a node uses a target that its stream waited for");
}

TEST_F(InboundReleases, NoTargetGoesUnderANode) {
  const auto target = parts.bring(parcels[0]);
  use(target);
  parcels[0]->count_unpacked(test::kTask, 1);
  settle(parcels[0]);
  parts.end_node(test::kTask, kNode);
  target->readers[0].open = 1;
  EXPECT_DEATH(parts.end_task(test::kTask), "no target is dropped under a node");
}

}  // namespace
}  // namespace ferry
