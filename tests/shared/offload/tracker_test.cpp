#include "shared/offload/tracker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "sim/gpu/device.h"

namespace ferry {
namespace {

using sim::SimDevice;
using ParcelRef = std::shared_ptr<Parcel<SimDevice>>;

class TrackerTest : public ::testing::Test {
 protected:
  ParcelRef add(ParcelKey key, Extent extent = {0, 1024}) {
    auto parcel = std::make_shared<Parcel<SimDevice>>();
    parcel->key = key;
    parcel->extent = extent;
    parcel->sequence = ++sequence_;
    parcel->saves = 1;
    tracker.insert(parcel);
    return parcel;
  }

  static constexpr ParcelKey kX{1, 10, 0};
  static constexpr Extent kAll{0, 1024};
  Tracker<SimDevice> tracker;

 private:
  std::uint64_t sequence_ = 0;
};

TEST_F(TrackerTest, FindsByStorageCounterAndVersion) {
  const ParcelRef x = add(kX);
  EXPECT_EQ(tracker.find(kX, kAll), x);
  EXPECT_EQ(tracker.find({2, 10, 0}, kAll), nullptr);
  EXPECT_EQ(tracker.find({1, 11, 0}, kAll), nullptr);
  EXPECT_EQ(tracker.find({1, 10, 1}, kAll), nullptr);
}

TEST_F(TrackerTest, FindsAParcelThatHoldsAllTheBytes) {
  const ParcelRef left = add(kX, {0, 512});
  const ParcelRef right = add(kX, {512, 1024});
  EXPECT_EQ(tracker.find(kX, {0, 512}), left);
  EXPECT_EQ(tracker.find(kX, {600, 700}), right);
  EXPECT_EQ(tracker.find(kX, {500, 600}), nullptr);
  EXPECT_EQ(tracker.find(kX, {500, 600}, false), left);
}

TEST_F(TrackerTest, DoesNotKeepAParcelAlive) {
  ParcelRef x = add(kX);
  const std::weak_ptr<Parcel<SimDevice>> seen = x;
  x.reset();
  EXPECT_TRUE(seen.expired());
  EXPECT_EQ(tracker.find(kX, kAll), nullptr);
}

TEST_F(TrackerTest, AParcelWithoutSavesIsNotFound) {
  const ParcelRef x = add(kX);
  x->saves = 0;
  EXPECT_EQ(tracker.find(kX, kAll), nullptr);
}

TEST_F(TrackerTest, ForgetsWhatIsErasedAlone) {
  const ParcelRef left = add(kX, {0, 512});
  const ParcelRef right = add(kX, {512, 1024});
  tracker.erase(*left);
  EXPECT_EQ(tracker.find(kX, {0, 512}), nullptr);
  EXPECT_EQ(tracker.find(kX, {512, 1024}), right);
  EXPECT_EQ(tracker.size(), 1u);
  tracker.erase(*right);
  EXPECT_TRUE(tracker.empty());
}

TEST_F(TrackerTest, RemembersTheOrderOfPacking) {
  const ParcelRef first = add({1, 1, 0});
  ParcelRef second = add({2, 2, 0});
  const ParcelRef third = add({3, 3, 0});
  EXPECT_EQ(tracker.older(99), third);
  EXPECT_EQ(tracker.older(third->sequence), second);
  second.reset();
  EXPECT_EQ(tracker.older(third->sequence), first);
  EXPECT_EQ(tracker.older(first->sequence), nullptr);
}

TEST_F(TrackerTest, CountsWhatFerryKeeps) {
  tracker.keep(7);
  tracker.keep(7);
  tracker.unkeep(7);
  EXPECT_TRUE(tracker.keeps(7));
  EXPECT_FALSE(tracker.empty());
  tracker.unkeep(7);
  EXPECT_FALSE(tracker.keeps(7));
  EXPECT_TRUE(tracker.empty());
}

}  // namespace
}  // namespace ferry
