// The way to the host: what is moved, what is kept, what is shared.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/shared/rig.h"

namespace ferry {
namespace {

using sim::Tensor;

// Whether the save of a 4 KiB tensor frees its device memory at the next pack.
bool moves(Rig& rig, Tensor&& tensor) {
  const std::int64_t before = rig.offloader.statistics().offloaded_count;
  const SaveRef save = rig.pack_only(std::move(tensor));
  return rig.offloader.statistics().offloaded_count > before;
}

TEST(OffloaderPack, MovesATensorOffTheDevice) {
  Rig rig;
  Tensor x = rig.world.make(4 * kKiB);
  const std::uint64_t contents = rig.world.contents(x);
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(x)));
  EXPECT_EQ(rig.live_storages(), 1) << "the forward stash keeps it under its copy";
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.backward(saves), std::vector{contents});
  saves.clear();
  rig.expect_clean();
}

TEST(OffloaderPack, KeepsWhatIsSmallerThanTheBound) {
  CoreOptions options = eager_options();
  options.bytes_min = 4 * kKiB;
  Rig rig(options);
  EXPECT_FALSE(moves(rig, rig.world.make(4 * kKiB - 1)));
  EXPECT_TRUE(moves(rig, rig.world.make(4 * kKiB)));
  EXPECT_FALSE(moves(rig, rig.world.make(0)));
  rig.evict();
  rig.expect_clean();
}

// A15: a test of the expanded size would let a broadcast of a few bytes through.
TEST(OffloaderPack, TheBoundCountsTheBytesMoved) {
  CoreOptions options = eager_options();
  options.bytes_min = 8 * kKiB;
  Rig rig(options);
  const Tensor row = rig.world.make(4 * kKiB);
  EXPECT_FALSE(moves(rig, rig.world.view(row, {DType::kU8, {1024, 4096}, {0, 1}, 0})));
  const Tensor large = rig.world.make(2 * kMiB);
  EXPECT_FALSE(moves(rig, rig.world.view(large, {DType::kU8, {4096}, {1}, 0})));
  EXPECT_TRUE(moves(rig, rig.world.view(large, {DType::kU8, {8192}, {1}, 0})));
}

TEST(OffloaderPack, KeepsParametersAlsoAfterTheyMove) {
  Rig rig;
  const Tensor parameter = rig.world.make(4 * kKiB);
  rig.offloader.exempt(parameter);
  EXPECT_FALSE(moves(rig, rig.world.view(parameter, {DType::kU8, {2048}, {1}, 0})));
  parameter->storage = rig.world.make(4 * kKiB)->storage;  // param.data = ...
  EXPECT_FALSE(moves(rig, rig.world.view(parameter, {DType::kU8, {4096}, {1}, 0})));
}

// A17: the address that a parameter once had tells nothing.
TEST(OffloaderPack, MovesWhatLiesWhereAParameterLay) {
  Rig rig;
  const Tensor parameter = rig.world.make(4 * kKiB);
  rig.offloader.exempt(parameter);
  const std::uint64_t address = parameter->storage->address;
  parameter->storage = rig.world.make(64 * kKiB)->storage;
  Tensor x = rig.world.make(4 * kKiB);
  ASSERT_EQ(x->storage->address, address);
  EXPECT_TRUE(moves(rig, std::move(x)));
}

TEST(OffloaderPack, KeepsATensorOfAnotherDevice) {
  World elsewhere;
  Rig rig;
  const Tensor other = elsewhere.make(4 * kKiB);
  const SaveRef save = rig.pack(other);
  EXPECT_EQ(save->unpack()->storage, other->storage);
  EXPECT_EQ(rig.offloader.statistics().kept, 1);
}

TEST(OffloaderPack, ThePlanSelectsByOrdinal) {
  CoreOptions options = eager_options();
  options.offload = {true, false, true};
  Rig rig(options);
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(moves(rig, rig.world.make(4 * kKiB)));
    EXPECT_FALSE(moves(rig, rig.world.make(4 * kKiB)));
    EXPECT_TRUE(moves(rig, rig.world.make(4 * kKiB)));
    EXPECT_FALSE(moves(rig, rig.world.make(4 * kKiB))) << "past the end";
    rig.offloader.begin_run();
  }
}

TEST(OffloaderPack, AnExcludedRegionIsKept) {
  Rig rig;
  const ScriptAutograd autograd(rig.script);
  const HooksGuard<ScriptAutograd> guard(autograd, rig.offloader.hooks());
  {
    const NoHooksGuard<ScriptAutograd> head(autograd);
    EXPECT_EQ(autograd.hooks().pack(rig.world.make(4 * kKiB)), nullptr);
  }
  EXPECT_NE(autograd.hooks().pack(rig.world.make(4 * kKiB)), nullptr);
  EXPECT_EQ(rig.offloader.statistics().packs, 1) << "the region's packs do not count";
}

// A12: q, k and v projections save the same input.
TEST(OffloaderPack, AStorageSavedThreeTimesIsCopiedOnce) {
  Rig rig;
  Tensor x = rig.world.make(4 * kKiB);
  const std::uint64_t contents = rig.world.contents(x);
  std::vector<SaveRef> saves;
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
  CoreOptions options = eager_options();
  options.offload = {false, true};
  Rig rig(options);
  const Tensor x = rig.world.make(4 * kKiB);
  const SaveRef kept = rig.pack(x);
  const SaveRef second = rig.pack(x);
  EXPECT_EQ(rig.world.copies(Step::kOffload), 0);
  EXPECT_EQ(rig.offloader.statistics().kept, 2);
}

// L3, A13: the map forgets what died, though its address lives again.
TEST(OffloaderPack, AnAddressReusedByAnotherStorageIsNoHit) {
  Rig rig;
  Tensor first = rig.world.make(4 * kKiB);
  const std::uint64_t address = first->storage->address;
  const std::uint64_t contents = rig.world.contents(first);
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(first)));
  rig.evict();
  Tensor second = rig.world.make(4 * kKiB);
  ASSERT_EQ(second->storage->address, address);
  const std::uint64_t other = rig.world.contents(second);
  saves.push_back(rig.pack_only(std::move(second)));
  EXPECT_EQ(rig.offloader.statistics().shared, 0);
  EXPECT_EQ(rig.offloader.statistics().offloaded_count, 2);
  EXPECT_EQ(rig.backward(saves), (std::vector{contents, other}));
}

// `x.data = ...`: the tensor and its version counter are the same, and even the address is.
TEST(OffloaderPack, ATensorWithAnotherStorageAtItsAddressIsNoHit) {
  Rig rig;
  const Tensor x = rig.world.make(4 * kKiB);
  const std::uint64_t address = x->storage->address;
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack(x));
  const std::uint64_t contents = rig.world.contents(x);
  x->storage.reset();
  rig.evict();
  x->storage = rig.world.make(4 * kKiB)->storage;
  ASSERT_EQ(x->storage->address, address);
  saves.push_back(rig.pack(x));
  EXPECT_EQ(rig.offloader.statistics().shared, 0);
  EXPECT_EQ(rig.backward(saves), (std::vector{contents, rig.world.contents(x)}));
}

// TE2: a copy stands for one version of its storage.
TEST(OffloaderPack, AWrittenTensorIsCopiedAgain) {
  Rig rig;
  Tensor x = rig.world.make(4 * kKiB);
  SaveRef old = rig.pack(x);
  rig.world.machine().wait(
      Step::kUser, rig.world.stream(0),
      rig.world.machine().record(Step::kUser, rig.world.machine().lane(Lane::kDeviceToHost)));
  rig.world.write(x);
  const std::uint64_t written = rig.world.contents(x);
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(x)));
  EXPECT_EQ(rig.world.copies(Step::kOffload), 2);
  rig.evict();
  EXPECT_EQ(rig.backward(saves), std::vector{written});
  EXPECT_THROW(old->unpack(), ModifiedInPlace);
}

// Both devices number their storages from 1.
TEST(OffloaderPack, WhatIsKeptOnAnotherDeviceKeepsNothingHere) {
  World elsewhere;
  Rig rig;
  const SaveRef kept = rig.pack(elsewhere.make(4 * kKiB));
  EXPECT_TRUE(moves(rig, rig.world.make(4 * kKiB)));
}

TEST(OffloaderPack, AViewOfASmallPartMovesThatPartAlone) {
  Rig rig;
  Tensor base = rig.world.make(4 * kMiB);
  Tensor view = rig.world.view(base, {DType::kU8, {10'000}, {1}, 5'000});
  const std::uint64_t contents = rig.world.contents(view);
  base.reset();
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack_only(std::move(view)));
  // From 4608, the boundary of 512 before 5000, to 15000.
  EXPECT_EQ(rig.offloader.statistics().offloaded_bytes, 15'000 - 4'608);
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.backward(saves), std::vector{contents});
}

TEST(OffloaderPack, AViewOfALargePartMovesTheStorage) {
  Rig rig;
  const Tensor base = rig.world.make(2 * kMiB);
  const SaveRef save = rig.pack(rig.world.view(base, {DType::kU8, {kMiB + 1}, {1}, 0}));
  EXPECT_EQ(rig.offloader.statistics().offloaded_bytes, 2 * kMiB);
  const SaveRef second = rig.pack(rig.world.view(base, {DType::kU8, {16 * kKiB}, {1}, kMiB}));
  EXPECT_EQ(rig.offloader.statistics().shared, 1) << "its bytes travel already";
}

TEST(OffloaderPack, APartThatTravelsServesNoOtherPart) {
  Rig rig;
  const Tensor base = rig.world.make(4 * kMiB);
  const Tensor left = rig.world.view(base, {DType::kU8, {64 * kKiB}, {1}, 0});
  const Tensor right = rig.world.view(base, {DType::kU8, {64 * kKiB}, {1}, kMiB});
  std::vector<SaveRef> saves;
  saves.push_back(rig.pack(left));
  saves.push_back(rig.pack(right));
  EXPECT_EQ(rig.world.copies(Step::kOffload), 2);
  EXPECT_EQ(rig.backward(saves),
            (std::vector{rig.world.contents(left), rig.world.contents(right)}));
}

}  // namespace
}  // namespace ferry
