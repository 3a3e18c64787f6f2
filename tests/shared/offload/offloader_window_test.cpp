// The forward window: how long a source stays on the device, and who waits for its copy.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/support/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

TEST(OffloaderWindow, ByPacksASourceStaysForSoManyFurtherPacks) {
  CoreOptions options = test::eager_options();
  options.window_packs = 3;
  test::Rig rig(options);
  const test::SaveRef save = rig.pack_only(rig.world.make(4 * test::kKiB));
  rig.evict();
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 1);
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
}

TEST(OffloaderWindow, ByBytesItsPeakIsTheBound) {
  CoreOptions options = test::eager_options();
  options.window_packs = kUnlimited;
  options.window_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 40; ++i) saves.push_back(rig.pack_only(rig.world.make((i % 5 + 1) * 4096)));
  EXPECT_LE(rig.offloader.statistics().forward_stash_peak_bytes, 64 * test::kKiB);
  EXPECT_GT(rig.offloader.statistics().forward_stash_peak_bytes, 40 * test::kKiB);
}

TEST(OffloaderWindow, ALargerSourceHasItToItself) {
  CoreOptions options = test::eager_options();
  options.window_packs = kUnlimited;
  options.window_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  std::vector<test::SaveRef> saves;
  for (const std::int64_t bytes : {16, 256, 16}) {
    saves.push_back(rig.pack_only(rig.world.make(bytes * test::kKiB)));
  }
  EXPECT_EQ(rig.offloader.statistics().forward_stash_peak_bytes, 256 * test::kKiB);
  EXPECT_EQ(rig.offloader.statistics().forward_stash_bytes, 16 * test::kKiB);
}

// Small tensors after a large one do not stall the forward on the large one's copy.
TEST(OffloaderWindow, ByDefaultSmallPacksDoNotEvict) {
  test::Rig rig(CoreOptions{});
  const test::SaveRef large = rig.pack_only(rig.world.make(64 * test::kMiB));
  std::vector<test::SaveRef> small;
  for (int i = 0; i < 20; ++i) small.push_back(rig.pack_only(rig.world.make(2 * test::kKiB)));
  EXPECT_EQ(rig.waits(Step::kEvict), 0);
  EXPECT_EQ(rig.offloader.statistics().compute_waits, 0);
}

// The wait goes to the pool that the block returns to, whoever computes now.
TEST(OffloaderWindow, EvictionWaitsOnTheOwnersStream) {
  test::Rig rig;
  sim::Machine& machine = rig.world.machine();
  test::SaveRef save = rig.pack_only(rig.world.make(test::kMiB));
  machine.set_current_stream(rig.world.stream(1));
  rig.evict();
  EXPECT_EQ(rig.live_storages(), 0);
  machine.set_current_stream(rig.world.stream(0));
  const Tensor next = rig.world.make(test::kMiB);  // reuses the block
  save.reset();
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

// A tensor of one stream's pool, saved on another.
TEST(OffloaderWindow, ASourceOfAnotherPoolIsLeftToItsPool) {
  test::Rig rig;
  sim::Machine& machine = rig.world.machine();
  Tensor x = rig.world.make(test::kMiB);
  machine.wait(Step::kUser, rig.world.stream(1), machine.record(Step::kUser, rig.world.stream(0)));
  machine.set_current_stream(rig.world.stream(1));
  rig.world.use(x);
  test::SaveRef save = rig.pack_only(std::move(x));
  rig.evict();
  machine.set_current_stream(rig.world.stream(0));
  const Tensor next = rig.world.make(test::kMiB);
  EXPECT_EQ(rig.waits(Step::kEvict), 0);
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

}  // namespace
}  // namespace ferry
