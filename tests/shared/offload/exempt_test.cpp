#include "shared/offload/exempt.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/sim/support/offloader_rig.h"

namespace ferry {
namespace {

using sim::SimDevice;
using sim::Tensor;
using test::kKiB;

class ExemptTest : public ::testing::Test {
 protected:
  bool has(const Tensor& x) {
    Bin<SimDevice> bin;
    return exempt.has(x, x->storage, bin);
  }
  void add(const Tensor& x) {
    Bin<SimDevice> bin;
    exempt.add(x, bin);
  }
  // Other bytes for the same tensor, as set_data gives it.
  void move(const Tensor& x) { x->storage = world.make(x->storage->bytes)->storage; }

  test::World world;
  Context<SimDevice> context{world.device(), test::eager_options(), {}};
  Exempt<SimDevice> exempt{context};
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

TEST_F(ExemptTest, SayingItAgainAddsNothing) {
  const Tensor x = world.make(kKiB);
  add(x);
  const std::size_t once = exempt.size();
  for (int i = 0; i < 100; ++i) add(x);
  EXPECT_EQ(exempt.size(), once);
}

}  // namespace
}  // namespace ferry
