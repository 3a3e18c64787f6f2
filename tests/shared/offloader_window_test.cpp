// The forward window: how long a source stays on the device, and who waits for its copy.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/rig.h"

namespace ferry {
namespace {

using sim::Tensor;

TEST(OffloaderWindow, ByPacksASourceStaysForSoManyFurtherPacks) {
  CoreOptions options = eager_options();
  options.window_packs = 3;
  Rig rig(options);
  const SaveRef save = rig.pack_only(rig.world.make(4 * kKiB));
  rig.evict();
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 1);
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
}

TEST(OffloaderWindow, ByBytesItsPeakIsTheBound) {
  CoreOptions options = eager_options();
  options.window_packs = kUnlimited;
  options.window_bytes = 64 * kKiB;
  Rig rig(options);
  std::vector<SaveRef> saves;
  for (int i = 0; i < 40; ++i) saves.push_back(rig.pack_only(rig.world.make((i % 5 + 1) * 4096)));
  EXPECT_LE(rig.offloader.statistics().forward_stash_peak_bytes, 64 * kKiB);
  EXPECT_GT(rig.offloader.statistics().forward_stash_peak_bytes, 40 * kKiB);
}

TEST(OffloaderWindow, ALargerSourceHasItToItself) {
  CoreOptions options = eager_options();
  options.window_packs = kUnlimited;
  options.window_bytes = 64 * kKiB;
  Rig rig(options);
  std::vector<SaveRef> saves;
  for (const std::int64_t bytes : {16, 256, 16}) {
    saves.push_back(rig.pack_only(rig.world.make(bytes * kKiB)));
  }
  EXPECT_EQ(rig.offloader.statistics().forward_stash_peak_bytes, 256 * kKiB);
  EXPECT_EQ(rig.offloader.statistics().forward_stash_bytes, 16 * kKiB);
}

// A14: small tensors after a large one do not stall the forward on the large one's copy.
TEST(OffloaderWindow, ByDefaultSmallPacksDoNotEvict) {
  Rig rig(CoreOptions{});
  const SaveRef large = rig.pack_only(rig.world.make(64 * kMiB));
  std::vector<SaveRef> small;
  for (int i = 0; i < 20; ++i) small.push_back(rig.pack_only(rig.world.make(2 * kKiB)));
  EXPECT_EQ(rig.waits(Step::kEvict), 0);
  EXPECT_EQ(rig.offloader.statistics().compute_waits, 0);
}

// A23: the wait goes to the pool that the block returns to, whoever computes now.
TEST(OffloaderWindow, EvictionWaitsOnTheOwnersStream) {
  Rig rig;
  sim::Machine& machine = rig.world.machine();
  SaveRef save = rig.pack_only(rig.world.make(kMiB));
  machine.set_current_stream(rig.world.stream(1));
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  machine.set_current_stream(rig.world.stream(0));
  const Tensor next = rig.world.make(kMiB);  // reuses the block
  save.reset();
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

// A tensor of one stream's pool, saved on another.
TEST(OffloaderWindow, ASourceOfAnotherPoolIsLeftToItsPool) {
  Rig rig;
  sim::Machine& machine = rig.world.machine();
  Tensor x = rig.world.make(kMiB);
  machine.wait(Step::kUser, rig.world.stream(1), machine.record(Step::kUser, rig.world.stream(0)));
  machine.set_current_stream(rig.world.stream(1));
  rig.world.use(x);
  SaveRef save = rig.pack_only(std::move(x));
  rig.evict();
  machine.set_current_stream(rig.world.stream(0));
  const Tensor next = rig.world.make(kMiB);
  EXPECT_EQ(rig.waits(Step::kEvict), 0);
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

}  // namespace
}  // namespace ferry
