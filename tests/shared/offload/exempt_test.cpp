#include "shared/offload/exempt.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tests/shared/offload/meddled.h"
#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kKiB;
using test::Meddled;

class ExemptTest : public ::testing::Test {
 protected:
  bool has(const Tensor& x) {
    Bin<Meddled> bin;
    return exempt.has(x, x->storage, bin);
  }
  void add(const Tensor& x) {
    Bin<Meddled> bin;
    exempt.add(x, bin);
  }
  // Other bytes for the same tensor, as set_data gives it.
  void move(const Tensor& x) { x->storage = world.make(x->storage->bytes)->storage; }

  test::World world;
  std::shared_ptr<test::Meddling> meddling = std::make_shared<test::Meddling>();
  Context<Meddled> context{Meddled(world.device(), meddling), test::eager_options(), {}};
  Exempt<Meddled> exempt{context};
};

TEST_F(ExemptTest, ATensorAndItsViews) {
  const Tensor x = world.make(kKiB);
  EXPECT_FALSE(has(x));
  add(x);
  EXPECT_TRUE(has(x));
  EXPECT_TRUE(has(world.view(x, {DType::kU8, {kKiB / 2}, {1}, 0})));
  EXPECT_FALSE(has(world.make(kKiB)));
}

TEST_F(ExemptTest, ATensorThatHasMovedAndWhatSharesItsNewStorageAlone) {
  const Tensor x = world.make(kKiB);
  add(x);
  move(x);
  const Tensor data = sim::make_tensor(x->storage, x->layout, world.make(kKiB)->version);
  EXPECT_TRUE(has(x));
  EXPECT_TRUE(has(data)) << "x.data: another counter, on the storage that x was seen on";
}

TEST_F(ExemptTest, WhatSharesTheStorageThatItHadWhenItWasTold) {
  const Tensor x = world.make(kKiB);
  const Tensor data = sim::make_tensor(x->storage, x->layout, world.make(kKiB)->version);
  add(x);
  EXPECT_TRUE(has(data));
}

// As in inference mode: it counts no writes, and its counter is not another's.
TEST_F(ExemptTest, ATensorWithoutACounterIsKnownByItsStorageAlone) {
  const auto without_counter = [&] {
    const Tensor x = world.make(kKiB);
    return sim::make_tensor(x->storage, x->layout, std::make_shared<sim::VersionCounter>());
  };
  const Tensor parameter = world.make(kKiB), x = without_counter();
  add(parameter);
  add(x);
  EXPECT_TRUE(has(x));
  EXPECT_FALSE(has(without_counter()));
}

TEST_F(ExemptTest, ATensorWithoutACounterNeedsNoOtherToBeKnown) {
  const Tensor x =
      sim::make_tensor(world.make(kKiB)->storage, {}, std::make_shared<sim::VersionCounter>());
  EXPECT_FALSE(has(x));
  add(x);
  EXPECT_TRUE(has(x));
}

// As a lazy parameter has none yet.
TEST_F(ExemptTest, ATensorWithoutAStorageIsKnownOnceItHasOne) {
  const Tensor x = world.make(kKiB);
  const sim::Storage storage = std::exchange(x->storage, nullptr);
  add(x);
  x->storage = storage;
  EXPECT_TRUE(has(x));
}

// A parameter is exempt as long as it lives, and keeps no memory: a training that says so in each
// step neither slows down nor grows.
TEST_F(ExemptTest, WhatHasDiedIsForgotten) {
  const Tensor lasting = world.make(kKiB);
  add(lasting);
  for (int i = 0; i < 10'000; ++i) add(world.make(kKiB));
  EXPECT_EQ(world.machine().live_storages(), 1);
  EXPECT_LT(exempt.size(), 500U);
  move(lasting);
  for (int i = 0; i < 10'000; ++i) add(world.make(kKiB));
  EXPECT_TRUE(has(lasting)) << "its first storage has died, the tensor has not";
}

TEST_F(ExemptTest, TheDeadNeverOutnumberTheLivingByMoreThanAFew) {
  std::vector<Tensor> lasting;
  for (int i = 0; i < 200; ++i) add(lasting.emplace_back(world.make(kKiB)));
  const std::size_t living = 2 * lasting.size();  // their counters and their storages
  for (int i = 0; i < 2'000; ++i) {
    add(world.make(kKiB));
    EXPECT_LE(exempt.size(), 2 * living + 100);
  }
}

TEST_F(ExemptTest, AParameterThatMovesInEachStepDoesNotGrow) {
  const Tensor x = world.make(kKiB);
  add(x);
  for (int i = 0; i < 10'000; ++i) {
    move(x);
    EXPECT_TRUE(has(x));
  }
  EXPECT_LT(exempt.size(), 500U);
}

// Whether an entry has died is asked a few times for each tensor, however many there are.
TEST_F(ExemptTest, ForgettingCostsNothing) {
  std::vector<Tensor> lasting;
  for (int i = 0; i < 2'000; ++i) add(lasting.emplace_back(world.make(kKiB)));
  for (const Tensor& x : lasting) {
    move(x);
    EXPECT_TRUE(has(x));
  }
  EXPECT_GT(meddling->uniques, 0);
  EXPECT_LT(meddling->uniques, 5 * 2 * 2'000);
}

// The core has the lock meanwhile; another thread drops the tensor that is being looked at.
TEST_F(ExemptTest, NoStorageIsDroppedWhileTheDeadAreForgotten) {
  Tensor x = world.make(kKiB);
  add(x);
  const std::weak_ptr<sim::StorageImpl> storage = x->storage;
  meddling->at_exists = [&](const sim::Storage& seen) {
    if (x && seen == x->storage) x.reset();
  };
  while (x) {
    Bin<Meddled> bin;
    exempt.add(world.make(kKiB), bin);
    EXPECT_FALSE(storage.expired());
  }
  EXPECT_TRUE(storage.expired()) << "it went with the bin";
}

TEST_F(ExemptTest, SayingItAgainAddsNothing) {
  const Tensor x = world.make(kKiB);
  add(x);
  const std::size_t once = exempt.size();
  EXPECT_EQ(once, 2U) << "its counter and its storage";
  for (int i = 0; i < 100; ++i) add(x);
  EXPECT_EQ(exempt.size(), once);
}

}  // namespace
}  // namespace ferry
