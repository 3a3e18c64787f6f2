#include "shared/offload/tracker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <new>

#include "sim/gpu/device.h"
#include "tests/shared/offload/host_heap.h"

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
    parcel->sequence = sequence_++;
    parcel->saves = 1;
    tracker.insert(parcel);
    return parcel;
  }

  static constexpr ParcelKey kX{1, 10, 0, 0};
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
}

// However many begin where the bytes do.
TEST_F(TrackerTest, FindsTheOneThatIsLongEnough) {
  const ParcelRef brief = add(kX, {0, 512});
  const ParcelRef all = add(kX, {0, 1024});
  const ParcelRef end = add(kX, {768, 1024});
  EXPECT_EQ(tracker.find(kX, {0, 512}), brief) << "the first of them";
  EXPECT_EQ(tracker.find(kX, {0, 1024}), all);
  EXPECT_EQ(tracker.find(kX, {512, 1000}), all);
}

TEST_F(TrackerTest, FindsTheLastThatBeginsBeforeTheBytesWhateverBeginsWithThem) {
  const ParcelRef brief = add(kX, {512, 600});  // the first pack of all
  const ParcelRef before = add(kX, {256, 1024});
  EXPECT_EQ(tracker.find(kX, {512, 1024}), before);
}

// A search takes a few steps, however many parcels a storage has.
TEST_F(TrackerTest, LooksAtTheLastThatBeginsBeforeTheBytesAndNotAtThoseBeforeIt) {
  const ParcelRef wide = add(kX, {128, 1024});
  const ParcelRef narrow = add(kX, {256, 300});
  EXPECT_EQ(tracker.find(kX, {512, 600}), nullptr);
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

TEST_F(TrackerTest, ErasingWhatIsNotThereChangesNothing) {
  const ParcelRef x = add(kX);
  Parcel<SimDevice> other;
  other.key = {2, 2, 0};
  other.sequence = 99;
  tracker.erase(other);
  EXPECT_EQ(tracker.find(kX, kAll), x);
  EXPECT_EQ(tracker.size(), 1u);
}

// Of as many parcels, whose keys differ in one number only. It takes milliseconds, or else minutes.
TEST_F(TrackerTest, FindsAsFastAmongManyWhateverTheirKeysDifferIn) {
  constexpr std::uint64_t kMany = 100'000;
  constexpr std::clock_t kLongest = 3 * CLOCKS_PER_SEC;
  for (std::uint64_t ParcelKey::*const number :
       {&ParcelKey::storage, &ParcelKey::counter, &ParcelKey::version, &ParcelKey::address}) {
    Tracker<SimDevice> many;
    const auto parcel = std::make_shared<Parcel<SimDevice>>();
    parcel->key = kX;
    parcel->saves = 1;
    parcel->extent = {0, 1};
    const std::clock_t began = std::clock();
    for (std::uint64_t i = 0; i < kMany && std::clock() - began < kLongest; ++i) {
      parcel->sequence = parcel->key.*number = i;
      many.insert(parcel);
    }
    EXPECT_EQ(many.size(), kMany) << "in three seconds of processor time";
    EXPECT_EQ(many.find(parcel->key, {0, 1}), parcel);
    EXPECT_EQ(many.find(parcel->key, {1, 2}), nullptr);
  }
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

TEST_F(TrackerTest, WhatItHasNoMemoryForIsNotThereAndTheCauseReachesTheCaller) {
  for (std::int64_t enough = 0;; ++enough) {
    Tracker<SimDevice> into;
    const ParcelRef x = add(kX);
    bool failed = false;
    try {
      const test::HeapGivesOut heap(enough);
      into.insert(x);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    EXPECT_EQ(into.empty(), failed) << enough;
    EXPECT_EQ(into.find(kX, kAll) == nullptr, failed) << enough;
    EXPECT_EQ(into.older(x->sequence + 1) == nullptr, failed) << enough;
    if (!failed) {
      EXPECT_GE(enough, 3) << "a key, a place and a number";
      return;
    }
  }
}

}  // namespace
}  // namespace ferry
