// The windows: how long a source stays on the device in forward, and who waits for its copy; how
// far ahead of backward anything is there.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

TEST(OffloaderWindow, ByPacksASourceStaysForSoManyFurtherPacks) {
  CoreOptions options = test::eager_options();
  options.window_tensors = 3;
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
  options.window_tensors = kUnlimited;
  options.window_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 40; ++i) saves.push_back(rig.pack_only(rig.world.make((i % 5 + 1) * 4096)));
  EXPECT_LE(rig.offloader.statistics().forward_stash_peak_bytes, 64 * test::kKiB);
  EXPECT_GT(rig.offloader.statistics().forward_stash_peak_bytes, 40 * test::kKiB);
}

TEST(OffloaderWindow, ALargerSourceHasItToItself) {
  CoreOptions options = test::eager_options();
  options.window_tensors = kUnlimited;
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

std::vector<std::uint64_t> packs_of(const test::Rig& rig, DecisionKind kind) {
  std::vector<std::uint64_t> packs;
  for (const Decision& decision : rig.decisions) {
    if (decision.kind == kind) packs.push_back(decision.pack);
  }
  return packs;
}

// Six sources of 64 KiB.
std::vector<test::SaveRef> in_the_window(test::Rig& rig) {
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 6; ++i) saves.push_back(rig.pack_only(rig.world.make(64 * test::kKiB)));
  return saves;
}

CoreOptions two_ahead() {
  CoreOptions options = test::eager_options();
  options.window_tensors = kUnlimited;
  options.window_bytes = kUnlimited;
  options.prefetch_tensors = 2;
  return options;
}

using Packs = std::vector<std::uint64_t>;

TEST(BackwardWindow, WhatIsFarLeavesWhenBackwardBegins) {
  test::Rig rig(two_ahead());
  const std::vector<test::SaveRef> saves = in_the_window(rig);
  rig.script.backward([&] {
    rig.consume(saves[5]);
    EXPECT_EQ(packs_of(rig, DecisionKind::kEvict), (Packs{0, 1, 2}));
    EXPECT_EQ(rig.live_storages(), 3) << "and those that come next stay";
    EXPECT_EQ(rig.waits(Step::kEvict), 3);
    for (const std::size_t i : {4, 3}) rig.consume(saves[i]);
    EXPECT_EQ(rig.offloader.statistics().stash_hits, 3);
  });
  EXPECT_EQ(rig.offloader.statistics().reloaded_count, 0);
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

// A kept tensor tells as well where backward has come to.
TEST(BackwardWindow, AKeptTensorEndsTheStayOfTheFar) {
  test::Rig rig(two_ahead());
  const std::vector<test::SaveRef> saves = in_the_window(rig);
  const test::SaveRef kept = rig.pack(rig.world.make(test::Rig::kTiny));
  rig.script.backward([&] { rig.consume(kept); });
  EXPECT_EQ(packs_of(rig, DecisionKind::kEvict), (Packs{0, 1, 2, 3}));
}

TEST(BackwardWindow, OutsideABackwardAllStay) {
  test::Rig rig(two_ahead());
  const std::vector<test::SaveRef> saves = in_the_window(rig);
  saves[5]->unpack();
  EXPECT_EQ(rig.live_storages(), 6);
}

TEST(BackwardWindow, NothingComesBackSoonerHoweverManyBytesMay) {
  CoreOptions options = two_ahead();
  options.window_tensors = 1;
  options.prefetch_bytes = kUnlimited;
  test::Rig rig(options);
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 6; ++i) saves.push_back(rig.pack_only(rig.world.make(64 * test::kKiB)));
  rig.evict();
  rig.script.backward([&] {
    rig.consume(saves[5]);
    EXPECT_EQ(packs_of(rig, DecisionKind::kPrefetch), (Packs{4, 3}));
    rig.consume(saves[4]);
    EXPECT_EQ(packs_of(rig, DecisionKind::kPrefetch), (Packs{4, 3, 2}));
  });
  EXPECT_EQ(rig.world.hazards(), std::vector<std::string>{});
}

// The tensor that is unpacked may itself be of a source that was packed long before.
TEST(BackwardWindow, ASourceThatIsUnpackedNowIsUsedBeforeItLeaves) {
  test::Rig rig(two_ahead());
  const Tensor x = rig.world.make(64 * test::kKiB);
  const std::uint64_t contents = rig.world.contents(x);
  const test::SaveRef first = rig.pack(x);
  const std::vector<test::SaveRef> saves = in_the_window(rig);
  const test::SaveRef last = rig.pack(x);  // shares the first's copy
  rig.script.backward([&] { EXPECT_EQ(rig.consume(last), contents); });
  EXPECT_EQ(rig.offloader.statistics().stash_hits, 1);
}

// The thread itself waits for the copy, where it is what computes; and may be told that it failed.
TEST(BackwardWindow, AFailedWaitIsToldAndTheNextUnpackTriesAgain) {
  test::World world;
  test::Script script;
  const auto fault = std::make_shared<FaultPoint>(Step::kEvict, 1);
  Offloader<Faulty<sim::SimDevice>, test::ScriptAutograd> offloader(
      Faulty<sim::SimDevice>(world.device(), fault), test::ScriptAutograd(script), two_ahead());
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 6; ++i) saves.push_back(offloader.hooks()->pack(world.make(64 * 1024)));
  script.backward([&] {
    EXPECT_ANY_THROW(saves[5]->unpack());
    EXPECT_EQ(offloader.statistics().forward_stash_bytes, 5 * 64 * 1024) << "one has left";
    EXPECT_NO_THROW(saves[5]->unpack());
    EXPECT_EQ(offloader.statistics().forward_stash_bytes, 3 * 64 * 1024);
  });
  saves.clear();
  EXPECT_TRUE(offloader.empty());
  EXPECT_EQ(world.hazards(), std::vector<std::string>{});
}

}  // namespace
}  // namespace ferry
