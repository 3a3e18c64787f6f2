// The way to the host: what is moved, what is kept, what is shared.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

// Whether the save of a 4 KiB tensor frees its device memory at the next pack.
bool moves(test::Rig& rig, Tensor&& tensor) {
  const std::int64_t before = rig.offloader.statistics().offloaded_count;
  const test::SaveRef save = rig.pack_only(std::move(tensor));
  return rig.offloader.statistics().offloaded_count > before;
}

TEST(OffloaderPack, MovesATensorOffTheDevice) {
  test::Rig rig;
  Tensor x = rig.world.make(4 * test::kKiB);
  const std::uint64_t contents = rig.world.contents(x);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(x)));
  EXPECT_EQ(rig.live_storages(), 1) << "the forward stash keeps it under its copy";
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.backward(saves), std::vector{contents});
  saves.clear();
  rig.expect_clean();
}

TEST(OffloaderPack, KeepsWhatIsSmallerThanTheBound) {
  CoreOptions options = test::eager_options();
  options.min_bytes = 4 * test::kKiB;
  test::Rig rig(options);
  EXPECT_FALSE(moves(rig, rig.world.make(4 * test::kKiB - 1)));
  EXPECT_TRUE(moves(rig, rig.world.make(4 * test::kKiB)));
  EXPECT_FALSE(moves(rig, rig.world.make(0)));
  rig.evict();
  rig.expect_clean();
}

// A test of the expanded size would let a broadcast of a few bytes through.
TEST(OffloaderPack, TheBoundCountsTheBytesMoved) {
  CoreOptions options = test::eager_options();
  options.min_bytes = 8 * test::kKiB;
  test::Rig rig(options);
  const Tensor row = rig.world.make(4 * test::kKiB);
  EXPECT_FALSE(moves(rig, rig.world.view(row, {DType::kU8, {1024, 4096}, {0, 1}, 0})));
  const Tensor large = rig.world.make(2 * test::kMiB);
  EXPECT_FALSE(moves(rig, rig.world.view(large, {DType::kU8, {4096}, {1}, 0})));
  EXPECT_TRUE(moves(rig, rig.world.view(large, {DType::kU8, {8192}, {1}, 0})));
}

TEST(OffloaderPack, KeepsParametersAlsoAfterTheyMove) {
  test::Rig rig;
  const Tensor parameter = rig.world.make(4 * test::kKiB);
  rig.offloader.exempt(parameter);
  EXPECT_FALSE(moves(rig, rig.world.view(parameter, {DType::kU8, {2048}, {1}, 0})));
  parameter->storage = rig.world.make(4 * test::kKiB)->storage;  // param.data = ...
  EXPECT_FALSE(moves(rig, rig.world.view(parameter, {DType::kU8, {4096}, {1}, 0})));
}

// The address that a parameter once had tells nothing.
TEST(OffloaderPack, MovesWhatLiesWhereAParameterLay) {
  test::Rig rig;
  const Tensor parameter = rig.world.make(4 * test::kKiB);
  rig.offloader.exempt(parameter);
  const std::uint64_t address = parameter->storage->address;
  parameter->storage = rig.world.make(64 * test::kKiB)->storage;
  Tensor x = rig.world.make(4 * test::kKiB);
  ASSERT_EQ(x->storage->address, address);
  EXPECT_TRUE(moves(rig, std::move(x)));
}

TEST(OffloaderPack, KeepsATensorOfAnotherDevice) {
  test::World elsewhere;
  test::Rig rig;
  const Tensor other = elsewhere.make(4 * test::kKiB);
  const test::SaveRef save = rig.pack(other);
  EXPECT_EQ(save->unpack()->storage, other->storage);
  EXPECT_EQ(rig.offloader.statistics().kept, 1);
}

TEST(OffloaderPack, ThePlanSelectsByOrdinal) {
  CoreOptions options = test::eager_options();
  options.offload = {true, false, true};
  test::Rig rig(options);
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(moves(rig, rig.world.make(4 * test::kKiB)));
    EXPECT_FALSE(moves(rig, rig.world.make(4 * test::kKiB)));
    EXPECT_TRUE(moves(rig, rig.world.make(4 * test::kKiB)));
    EXPECT_FALSE(moves(rig, rig.world.make(4 * test::kKiB))) << "past the end";
    rig.offloader.begin_run();
  }
}

TEST(OffloaderPack, AnExcludedRegionIsKept) {
  test::Rig rig;
  const test::ScriptAutograd autograd(rig.script);
  const HooksGuard<test::ScriptAutograd> guard(autograd, rig.offloader.hooks());
  {
    const NoHooksGuard<test::ScriptAutograd> head(autograd);
    EXPECT_EQ(autograd.hooks().pack(rig.world.make(4 * test::kKiB)), nullptr);
  }
  EXPECT_NE(autograd.hooks().pack(rig.world.make(4 * test::kKiB)), nullptr);
  EXPECT_EQ(rig.offloader.statistics().packs, 1) << "the region's packs do not count";
}

// Q, k and v projections save the same input.
TEST(OffloaderPack, AStorageSavedThreeTimesIsCopiedOnce) {
  test::Rig rig;
  Tensor x = rig.world.make(4 * test::kKiB);
  const std::uint64_t contents = rig.world.contents(x);
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 3; ++i) saves.push_back(rig.pack(x));
  x.reset();
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.world.copies(Step::kOffload), 1);
  EXPECT_EQ(rig.offloader.statistics().shared, 2);
  EXPECT_EQ(rig.backward(saves), std::vector(3, contents));
  saves.clear();
  rig.expect_clean();
}

TEST(OffloaderPack, AStorageThatFerryKeepsIsNotCopied) {
  CoreOptions options = test::eager_options();
  options.offload = {false, true};
  test::Rig rig(options);
  const Tensor x = rig.world.make(4 * test::kKiB);
  const test::SaveRef kept = rig.pack(x);
  const test::SaveRef second = rig.pack(x);
  EXPECT_EQ(rig.world.copies(Step::kOffload), 0);
  EXPECT_EQ(rig.offloader.statistics().kept, 2);
}

// The map forgets what died, though its address lives again.
TEST(OffloaderPack, AnAddressReusedByAnotherStorageIsNoHit) {
  test::Rig rig;
  Tensor first = rig.world.make(4 * test::kKiB);
  const std::uint64_t address = first->storage->address;
  const std::uint64_t contents = rig.world.contents(first);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(first)));
  rig.evict();
  Tensor second = rig.world.make(4 * test::kKiB);
  ASSERT_EQ(second->storage->address, address);
  const std::uint64_t other = rig.world.contents(second);
  saves.push_back(rig.pack_only(std::move(second)));
  EXPECT_EQ(rig.offloader.statistics().shared, 0);
  EXPECT_EQ(rig.offloader.statistics().offloaded_count, 2);
  EXPECT_EQ(rig.backward(saves), (std::vector{contents, other}));
}

// `x.data = ...`: the tensor and its version counter are the same, and even the address is.
TEST(OffloaderPack, ATensorWithAnotherStorageAtItsAddressIsNoHit) {
  test::Rig rig;
  const Tensor x = rig.world.make(4 * test::kKiB);
  const std::uint64_t address = x->storage->address;
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(x));
  const std::uint64_t contents = rig.world.contents(x);
  x->storage.reset();
  rig.evict();
  x->storage = rig.world.make(4 * test::kKiB)->storage;
  ASSERT_EQ(x->storage->address, address);
  saves.push_back(rig.pack(x));
  EXPECT_EQ(rig.offloader.statistics().shared, 0);
  EXPECT_EQ(rig.backward(saves), (std::vector{contents, rig.world.contents(x)}));
}

// A copy stands for one version of its storage.
TEST(OffloaderPack, AWrittenTensorIsCopiedAgain) {
  test::Rig rig;
  Tensor x = rig.world.make(4 * test::kKiB);
  test::SaveRef old = rig.pack(x);
  rig.world.machine().wait(
      Step::kUser, rig.world.stream(0),
      rig.world.machine().record(Step::kUser, rig.world.machine().lane(Lane::kDeviceToHost)));
  rig.world.write(x);
  const std::uint64_t written = rig.world.contents(x);
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(x)));
  EXPECT_EQ(rig.world.copies(Step::kOffload), 2);
  rig.evict();
  EXPECT_EQ(rig.backward(saves), std::vector{written});
  EXPECT_THROW(old->unpack(), ModifiedInPlace);
}

// Both devices number their storages from 1.
TEST(OffloaderPack, WhatIsKeptOnAnotherDeviceKeepsNothingHere) {
  test::World elsewhere;
  test::Rig rig;
  const test::SaveRef kept = rig.pack(elsewhere.make(4 * test::kKiB));
  EXPECT_TRUE(moves(rig, rig.world.make(4 * test::kKiB)));
}

TEST(OffloaderPack, AViewOfASmallPartMovesThatPartAlone) {
  test::Rig rig;
  Tensor base = rig.world.make(4 * test::kMiB);
  Tensor view = rig.world.view(base, {DType::kU8, {10'000}, {1}, 5'000});
  const std::uint64_t contents = rig.world.contents(view);
  base.reset();
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(view)));
  // From 4608, the boundary of 512 before 5000, to 15000.
  EXPECT_EQ(rig.offloader.statistics().offloaded_bytes, 15'000 - 4'608);
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.backward(saves), std::vector{contents});
}

TEST(OffloaderPack, AViewOfALargePartMovesTheStorage) {
  test::Rig rig;
  const Tensor base = rig.world.make(2 * test::kMiB);
  const test::SaveRef save = rig.pack(rig.world.view(base, {DType::kU8, {test::kMiB + 1}, {1}, 0}));
  EXPECT_EQ(rig.offloader.statistics().offloaded_bytes, 2 * test::kMiB);
  const test::SaveRef second =
      rig.pack(rig.world.view(base, {DType::kU8, {16 * test::kKiB}, {1}, test::kMiB}));
  EXPECT_EQ(rig.offloader.statistics().shared, 1) << "its bytes travel already";
}

TEST(OffloaderPack, APartThatTravelsServesNoOtherPart) {
  test::Rig rig;
  const Tensor base = rig.world.make(4 * test::kMiB);
  const Tensor left = rig.world.view(base, {DType::kU8, {64 * test::kKiB}, {1}, 0});
  const Tensor right = rig.world.view(base, {DType::kU8, {64 * test::kKiB}, {1}, test::kMiB});
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack(left));
  saves.push_back(rig.pack(right));
  EXPECT_EQ(rig.world.copies(Step::kOffload), 2);
  EXPECT_EQ(rig.backward(saves),
            (std::vector{rig.world.contents(left), rig.world.contents(right)}));
}

}  // namespace
}  // namespace ferry
