// The core on a device that fails, or where another thread does something, in the middle of a call.
#include <gtest/gtest.h>

#include <cstdint>
#include <new>

#include "tests/shared/offload/meddled_rig.h"

namespace ferry {
namespace {

using sim::Tensor;
using test::kBytes;
using test::Meddled;
using test::MeddledRig;
using test::SaveRef;

// Of a tensor that is smaller than what may move.
TEST(OffloadCoreMeddled, OfASmallTensorNothingIsWorkedOutAndNothingRemembered) {
  MeddledRig rig;
  const SaveRef small = rig.pack_new(test::Rig::kTiny);
  EXPECT_EQ(rig.meddling->layouts, 0);
  EXPECT_TRUE(rig.offloader.empty());
}

class Frees final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kFree) ++(Meddled::Mutex::held ? under : outside);
  }
  int under = 0;
  int outside = 0;
};

// While the core has a hold of it, the program lets go: its deleter may be anybody's code.
TEST(OffloadCoreMeddled, ASourceThatAnotherThreadDropsMeanwhileGoesWithoutTheLock) {
  Frees frees;
  MeddledRig rig;
  Tensor x = rig.world.make(kBytes);
  const SaveRef save = rig.pack(x);
  rig.evict();
  rig.world.machine().add_consumer(&frees);
  rig.meddling->moved = 512;  // so that the tensor is not handed out
  rig.meddling->at_address = [&] { x.reset(); };
  EXPECT_THROW(save->unpack(), StorageReplaced);
  EXPECT_EQ(frees.under, 0);
  EXPECT_EQ(frees.outside, 1);
}

TEST(OffloadCoreMeddled, WhatCameBackGoesWhereNoTensorCouldBeMadeOfIt) {
  for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
    CoreOptions options = test::eager_options();
    options.reload_pool = pool;
    MeddledRig rig(options);
    Tensor x = rig.world.make(kBytes);
    const std::uint64_t contents = rig.world.contents(x);
    SaveRef save = rig.pack(x);
    x.reset();
    rig.evict();
    rig.meddling->at_restore = [] { throw std::bad_alloc(); };
    EXPECT_THROW(rig.script.backward([&] { save->unpack(); }), std::bad_alloc);
    EXPECT_EQ(rig.counts().backward_stash_bytes, 0);
    EXPECT_EQ(rig.live_storages(), 0);
    rig.meddling->at_restore = nullptr;
    rig.script.backward([&] { EXPECT_EQ(rig.world.contents(save->unpack()), contents); });
    save.reset();
    EXPECT_TRUE(rig.offloader.empty());
    rig.world.expect_clean();
  }
}

// --- A storage with other memory

TEST(OffloaderReplaced, AStorageAtAnotherAddressIsAnError) {
  const auto unpack = [](const Rules& rules) {
    MeddledRig rig(test::eager_options(), rules);
    const Tensor x = rig.world.make(kBytes);
    const SaveRef save = rig.pack(x);
    EXPECT_EQ(save->unpack()->storage, x->storage);
    rig.meddling->moved = 512;
    save->unpack();
  };
  EXPECT_THROW(unpack({}), StorageReplaced);
  EXPECT_NO_THROW(unpack(Rules::without(Rule::kCheckVersion)));
}

TEST(OffloaderReplaced, SoIsAStorageThatNoLongerHasTheBytesThatMoved) {
  MeddledRig rig;
  const Tensor x = rig.world.make(4 * test::kMiB);
  const SaveRef part = rig.pack(rig.world.view(x, {DType::kU8, {test::kMiB}, {1}, 0}));
  const SaveRef all = rig.pack(x);
  rig.meddling->missing = test::kMiB;
  EXPECT_NO_THROW(part->unpack());
  EXPECT_THROW(all->unpack(), StorageReplaced);
  rig.meddling->missing = 3 * test::kMiB;
  EXPECT_NO_THROW(part->unpack());
  rig.meddling->missing = 3 * test::kMiB + 1;
  EXPECT_THROW(part->unpack(), StorageReplaced);
}

// It has other bytes than those that the first save moved, though no write was counted.
TEST(OffloaderReplaced, ASaveAfterItMovesAgain) {
  MeddledRig rig;
  const Tensor x = rig.world.make(kBytes);
  const SaveRef first = rig.pack(x);
  rig.meddling->moved = 512;
  const SaveRef second = rig.pack(x);
  EXPECT_EQ(rig.counts().shared, 0);
  const SaveRef third = rig.pack(x);
  EXPECT_EQ(rig.counts().shared, 1) << "it has the second one's memory";
  EXPECT_THROW(first->unpack(), StorageReplaced);
  EXPECT_EQ(second->unpack()->storage, x->storage);
  EXPECT_EQ(third->unpack()->storage, x->storage);
}

// The copy may be of the one memory or of the other.
TEST(OffloaderReplaced, SoIsOneThatHadOtherMemoryWhenItWasEvictedThoughItIsGone) {
  MeddledRig rig;
  const SaveRef save = rig.pack_new(kBytes);
  rig.meddling->moved = 512;
  rig.evict();
  rig.meddling->moved = 0;
  ASSERT_EQ(rig.live_storages(), 0);
  EXPECT_THROW(save->unpack(), StorageReplaced);
}

}  // namespace
}  // namespace ferry
