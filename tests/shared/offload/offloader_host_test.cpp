// Where what computes is a thread of the host: it waits for the copies itself, without the lock,
// and is told of the one that failed.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/shared/offload/meddled_rig.h"

namespace ferry {
namespace {

using test::kBytes;
using test::MeddledRig;
using test::SaveRef;

class HostRig : public MeddledRig {
 public:
  explicit HostRig(const CoreOptions& options = test::eager_options()) : MeddledRig(options) {
    meddling->host_computes = true;
    meddling->at_host_wait = [this](Step step) {
      waits.push_back(step);
      if (std::exchange(fails, std::nullopt) == step) throw std::runtime_error("a copy has failed");
    };
  }

  std::vector<Step> waits;
  std::optional<Step> fails;  // the next wait, which is at this step
};

using Waits = std::vector<Step>;

TEST(OffloaderHost, AnEvictedSourceGoesWhenTheThreadHasWaitedForItsCopy) {
  HostRig rig;
  const SaveRef save = rig.pack_new(kBytes);
  EXPECT_EQ(rig.live_storages(), 1);
  EXPECT_EQ(rig.waits, Waits{});
  rig.evict();
  EXPECT_EQ(rig.waits, Waits{Step::kEvict});
  EXPECT_EQ(rig.live_storages(), 0);
  EXPECT_EQ(rig.counts().forward_stash_bytes, 0);
  EXPECT_EQ(rig.made(Step::kAbandon), 0);
}

TEST(OffloaderHost, APackTellsThatACopyHasFailedAndTheSourceStays) {
  HostRig rig;
  SaveRef save = rig.pack_new(kBytes);
  rig.fails = Step::kEvict;
  EXPECT_THROW(rig.pack_new(2 * kBytes), std::runtime_error);
  EXPECT_EQ(rig.counts().forward_stash_bytes, kBytes) << "what was to be packed is not";
  EXPECT_EQ(rig.host_bytes(), kBytes);
  EXPECT_EQ(rig.live_storages(), 1);
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  save.reset();
  EXPECT_TRUE(rig.offloader.empty());
}

// A copy that has failed says so to whoever waits for it: it is of no use to another save.
TEST(OffloaderHost, AnUnpackTellsThatAReloadHasFailedAndTheNextOneReloads) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = test::kMiB;
  HostRig rig(options);
  sim::Tensor x = rig.world.make(kBytes);
  const std::uint64_t contents = rig.world.contents(x);
  const SaveRef first = rig.pack(x), second = rig.pack(x);
  x.reset();
  rig.evict();
  rig.fails = Step::kConsume;
  rig.script.backward([&] {
    EXPECT_THROW(first->unpack(), std::runtime_error);
    EXPECT_EQ(rig.counts().backward_stash_bytes, 0);
    EXPECT_EQ(rig.made(Step::kAbandon), 1) << "the copy may still be writing";
    EXPECT_EQ(rig.world.contents(first->unpack()), contents);
    EXPECT_EQ(rig.world.contents(second->unpack()), contents);
  });
  EXPECT_EQ(rig.made(Step::kReload), 2);
}

// Each thread waits for itself.
TEST(OffloaderHost, EveryUnpackWaitsForItsReload) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = test::kMiB;
  HostRig rig(options);
  sim::Tensor x = rig.world.make(kBytes);
  const SaveRef first = rig.pack(x), second = rig.pack(x);
  x.reset();
  rig.evict();
  rig.waits.clear();
  rig.script.backward([&] {
    first->unpack();
    EXPECT_EQ(rig.waits, Waits{Step::kConsume});
    second->unpack();
    EXPECT_EQ(rig.waits, (Waits{Step::kConsume, Step::kConsume}));
  });
  EXPECT_EQ(rig.made(Step::kReload), 1);
}

TEST(OffloaderHost, TheEndOfATaskWaitsForWhatCameBackInVain) {
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = kUnlimited;
  HostRig rig(options);
  std::vector<SaveRef> saves;
  for (int i = 0; i < 2; ++i) saves.push_back(rig.pack_new(kBytes));
  rig.evict();
  rig.waits.clear();
  rig.script.backward([&] { saves[1]->unpack(); });
  EXPECT_EQ(rig.waits, (Waits{Step::kConsume, Step::kDiscard}));
  EXPECT_EQ(rig.live_storages(), 0);
}

// So a kept tensor's unpack may fail, too.
TEST(OffloaderHost, AKeptTensorTellsThatTheCopyOfAFarOneHasFailed) {
  CoreOptions options = test::eager_options();
  options.window_tensors = kUnlimited;
  options.prefetch_tensors = 1;
  HostRig rig(options);
  const SaveRef far = rig.pack_new(kBytes), near = rig.pack_new(kBytes);
  const SaveRef kept = rig.pack_new(test::Rig::kTiny);
  rig.fails = Step::kEvict;
  rig.script.backward([&] {
    EXPECT_THROW(kept->unpack(), std::runtime_error);
    EXPECT_NO_THROW(kept->unpack());
  });
  EXPECT_EQ(rig.counts().forward_stash_bytes, kBytes) << "the near one's";
}

}  // namespace
}  // namespace ferry
