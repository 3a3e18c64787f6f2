// Each assertion of the plain parts is seen to fail: parcels, their tracker and their bounds.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "shared/offload/bounds.h"
#include "shared/offload/tracker.h"
#include "sim/gpu/device.h"

namespace ferry {
namespace {

class TrackerInvariants : public ::testing::Test {
 protected:
  using ParcelRef = std::shared_ptr<Parcel<sim::SimDevice>>;

  static ParcelRef parcel(std::uint64_t storage, std::uint64_t sequence) {
    auto parcel = std::make_shared<Parcel<sim::SimDevice>>();
    parcel->key = {storage, 1, 0, 0};
    parcel->extent = {0, 1024};
    parcel->sequence = sequence;
    parcel->saves = 1;
    return parcel;
  }

  const ParcelRef x = parcel(1, 10);
  Tracker<sim::SimDevice> tracker;
};

TEST_F(TrackerInvariants, EachParcelHasOnePlaceAndOneKey) {
  tracker.insert(x);
  EXPECT_DEATH(tracker.insert(x), "a parcel is tracked once");
  EXPECT_DEATH(tracker.insert(parcel(2, 10)),
               "no two parcels have one place in the order of packing");
  x->sequence = 9;
  EXPECT_DEATH(tracker.older(20), "a tracked parcel keeps its place in the order of packing");
  const ParcelKey known = x->key;
  x->key.version = 1;
  EXPECT_DEATH(tracker.find(known, {0, 8}),
               "a tracked parcel stands for the storage that it was sent for");
}

TEST_F(TrackerInvariants, OnlyWhatIsKeptIsLetGo) {
  EXPECT_DEATH(tracker.unkeep(7), "a storage that is let go was counted as kept");
}

TEST_F(TrackerInvariants, ATaskUnpacksWhatThereIs) {
  const GraphTaskId task{1};
  EXPECT_DEATH(x->count_unpacked(task, -1), "a task takes back no unpacking that it has not done");
  x->count_unpacked(task, 1);
  EXPECT_DEATH(x->count_unpacked(task, 1), "a task unpacks no more saves of a parcel than it has");
}

TEST(BoundsInvariants, WhatIsOnTheHostWasSent) {
  const CoreOptions options{};
  Bounds bounds(options);
  EXPECT_DEATH(bounds.sent(0), "what is sent to the host has bytes");
  bounds.sent(8);
  EXPECT_DEATH(bounds.returned(9), "no more bytes leave the host than were sent there");
}

}  // namespace
}  // namespace ferry
