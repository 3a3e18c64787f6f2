// What the options choose, what the statistics count, and what the decision log says.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

std::vector<test::SaveRef> forward(test::Rig& rig, int count, std::int64_t bytes) {
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < count; ++i) saves.push_back(rig.pack_only(rig.world.make(bytes)));
  return saves;
}

TEST(OffloaderOptions, ImpossibleOnesAreRefused) {
  CoreOptions options;
  options.window_tensors = 0;
  EXPECT_THROW(test::Rig rig(options), std::invalid_argument);
}

class OffloaderStreams : public ::testing::TestWithParam<CopyStreams> {};

TEST_P(OffloaderStreams, AnyNumberOfCopyStreamsIsSafe) {
  for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
    for (const HostMemory memory : {HostMemory::kPinned, HostMemory::kPageable}) {
      CoreOptions options = test::eager_options();
      options.copy_streams = GetParam();
      options.reload_pool = pool;
      options.host_memory = memory;
      options.prefetch_bytes = 128 * test::kKiB;
      test::Rig rig(options);
      std::vector<std::uint64_t> contents;
      std::vector<test::SaveRef> saves;
      for (int i = 0; i < 6; ++i) {
        Tensor x = rig.world.make(64 * test::kKiB);
        contents.push_back(rig.world.contents(x));
        saves.push_back(rig.pack_only(std::move(x)));
      }
      rig.evict();
      EXPECT_EQ(rig.backward(saves), contents);
      saves.clear();
      rig.expect_clean();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Copies, OffloaderStreams,
                         ::testing::Values(CopyStreams::kTwo, CopyStreams::kOne,
                                           CopyStreams::kNone));

TEST(OffloaderOptions, WithoutCopyStreamsNothingWaits) {
  CoreOptions options = test::eager_options();
  options.copy_streams = CopyStreams::kNone;
  test::Rig rig(options);
  const std::vector<test::SaveRef> saves = forward(rig, 4, 64 * test::kKiB);
  EXPECT_EQ(rig.live_storages(), 0) << "the pool's own order keeps the sources";
  rig.backward(saves);
  EXPECT_EQ(rig.offloader.statistics().compute_waits, 0);
}

// The host waits for a pageable copy, and for no pinned one.
TEST(OffloaderOptions, PageableCopiesBlockTheHost) {
  for (const HostMemory memory : {HostMemory::kPinned, HostMemory::kPageable}) {
    CoreOptions options = test::eager_options();
    options.host_memory = memory;
    test::Rig rig(options);
    const test::SaveRef save = rig.pack_only(rig.world.make(test::kMiB));
    EXPECT_EQ(rig.world.machine().host_now() > 0, memory == HostMemory::kPageable);
  }
}

TEST(OffloaderOptions, PrefetchIsBoundedAndRunsBackwards) {
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = 128 * test::kKiB;
  test::Rig rig(options);
  const std::vector<test::SaveRef> saves = forward(rig, 8, 64 * test::kKiB);
  rig.evict();
  rig.decisions.clear();
  rig.script.backward([&] { rig.consume(saves[7]); });
  std::vector<std::uint64_t> prefetched;
  for (const Decision& decision : rig.decisions) {
    if (decision.kind == DecisionKind::kPrefetch) prefetched.push_back(decision.pack);
  }
  EXPECT_EQ(prefetched, (std::vector<std::uint64_t>{6, 5}));
  EXPECT_EQ(rig.offloader.statistics().backward_stash_bytes, 0) << "at the end of the task";
  EXPECT_EQ(rig.offloader.statistics().vain_count, 2);
}

// Packs that were kept tell where the backward has come to, too.
TEST(OffloaderOptions, AKeptTensorBeginsThePrefetch) {
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = 128 * test::kKiB;
  test::Rig rig(options);
  const std::vector<test::SaveRef> saves = forward(rig, 2, 64 * test::kKiB);
  const test::SaveRef kept = rig.pack(rig.world.make(test::Rig::kTiny));
  rig.script.backward([&] {
    rig.consume(kept);
    EXPECT_EQ(rig.offloader.statistics().prefetched_count, 2);
  });
}

TEST(OffloaderOptions, WithoutAHoldEachSaveReloads) {
  for (const std::int64_t hold : {std::int64_t{0}, 64 * test::kKiB}) {
    CoreOptions options = test::eager_options();
    options.hold_bytes = hold;
    test::Rig rig(options);
    Tensor x = rig.world.make(64 * test::kKiB);
    std::vector<test::SaveRef> saves;
    for (int i = 0; i < 3; ++i) saves.push_back(rig.pack(x));
    x.reset();
    rig.evict();
    rig.backward(saves);
    EXPECT_EQ(rig.world.copies(Step::kReload), hold > 0 ? 1 : 3);
  }
}

TEST(OffloaderOptions, HeldTargetsAreBounded) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = 128 * test::kKiB;
  test::Rig rig(options);
  std::vector<test::SaveRef> first, second;
  for (int i = 0; i < 6; ++i) {
    const Tensor x = rig.world.make(64 * test::kKiB);
    first.push_back(rig.pack(x));
    second.push_back(rig.pack(x));
  }
  rig.evict();
  rig.script.backward([&] {
    for (const test::SaveRef& save : first) {
      rig.consume(save);
      EXPECT_LE(rig.offloader.statistics().backward_stash_bytes, 128 * test::kKiB);
    }
  });
}

// GPT-2's logits after their softmax, 1.5 GiB, are saved twice: under a hold of 512 MiB they came
// back once for each save.
TEST(OffloaderOptions, AStorageLargerThanTheHoldComesBackOnce) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  Tensor small = rig.world.make(32 * test::kKiB);
  std::vector<test::SaveRef> others, saves;
  for (int i = 0; i < 2; ++i) others.push_back(rig.pack(small));
  Tensor large = rig.world.make(test::kMiB);
  for (int i = 0; i < 3; ++i) saves.push_back(rig.pack(large));
  large.reset();
  small.reset();
  rig.evict();
  rig.script.backward([&] {
    rig.consume(saves[2]);
    rig.consume(others[1]);  // in between: what fits in the hold does not push it out
    rig.consume(saves[1]);
    rig.consume(saves[0]);
    rig.consume(others[0]);
  });
  EXPECT_EQ(rig.offloader.statistics().reloaded_bytes, 1056 * test::kKiB);
}

// However many there are, one at a time: memory is bounded by the largest.
TEST(OffloaderOptions, OneStorageLargerThanTheHoldIsHeld) {
  CoreOptions options = test::eager_options();
  options.hold_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  std::vector<test::SaveRef> first, second;
  for (int i = 0; i < 4; ++i) {
    const Tensor x = rig.world.make(test::kMiB);
    first.push_back(rig.pack(x));
    second.push_back(rig.pack(x));
  }
  rig.evict();
  rig.script.backward([&] {
    for (const test::SaveRef& save : first) {
      rig.consume(save);
      EXPECT_LE(rig.offloader.statistics().backward_stash_bytes, test::kMiB);
    }
  });
}

// So that the copy stream does not wait for the node that it feeds.
TEST(OffloaderOptions, FromTheCopyStreamsPoolATargetIsReleasedOneNodeLater) {
  CoreOptions options = test::eager_options();
  options.reload_pool = ReloadPool::kCopyStream;
  test::Rig rig(options);
  const std::vector<test::SaveRef> saves = forward(rig, 3, 64 * test::kKiB);
  rig.evict();
  rig.script.backward([&] {
    for (std::int64_t node = 0; node < 3; ++node) {
      rig.consume(saves[static_cast<std::size_t>(2 - node)]);
      EXPECT_EQ(rig.waits(Step::kReleaseAfterNode), node);
    }
  });
  EXPECT_EQ(rig.waits(Step::kReleaseAfterNode), 3) << "the task's end releases the last";
}

// --- The warning, in TRL's words

std::vector<std::string> warnings(std::int64_t used_pages, HostMemory memory) {
  std::vector<std::string> texts;
  sim::MachineOptions machine;
  machine.host_total_bytes = 1000 * 4 * test::kKiB;
  CoreOptions options = test::eager_options();
  options.host_memory = memory;
  options.warn = [&texts](const std::string& text) { texts.push_back(text); };
  test::Rig rig(options, machine);
  const std::vector<test::SaveRef> saves = forward(rig, 1, used_pages * 4 * test::kKiB);
  rig.evict();
  EXPECT_TRUE(texts.empty()) << "not before the first backward";
  rig.backward(saves);
  rig.backward(saves);
  return texts;
}

TEST(OffloaderWarning, IsGivenOnceAboveThePercentage) {
  EXPECT_EQ(warnings(721, HostMemory::kPinned),
            std::vector<std::string>{"72.1% of the host's memory is in use, more than 60%: "
                                     "page-locked memory for offloaded tensors may run out"});
}

TEST(OffloaderWarning, IsNotGivenAtThePercentageOrBelow) {
  EXPECT_TRUE(warnings(600, HostMemory::kPinned).empty());
  EXPECT_EQ(warnings(601, HostMemory::kPinned).size(), 1u);
}

TEST(OffloaderWarning, IsNotGivenForPageableMemory) {
  EXPECT_TRUE(warnings(721, HostMemory::kPageable).empty());
}

// --- Statistics and the decision log

TEST(OffloaderStatistics, CountWhatAStepDid) {
  test::Rig rig;
  std::vector<test::SaveRef> saves = forward(rig, 3, 64 * test::kKiB);
  const Tensor alive = rig.world.make(64 * test::kKiB);
  saves.push_back(rig.pack(alive));
  saves.push_back(rig.pack(alive));
  rig.evict();
  rig.backward(saves);
  const OffloadStatistics counts = rig.offloader.statistics();
  EXPECT_EQ(counts.packs, 6);
  EXPECT_EQ(counts.kept, 1);
  EXPECT_EQ(counts.shared, 1);
  EXPECT_EQ(counts.offloaded_count, 4);
  EXPECT_EQ(counts.offloaded_bytes, 4 * 64 * test::kKiB);
  EXPECT_EQ(counts.reloaded_count, 3);
  EXPECT_EQ(counts.reloaded_bytes, 3 * 64 * test::kKiB);
  EXPECT_EQ(counts.prefetched_count, 0);
  EXPECT_EQ(counts.stash_hits, 2);
  EXPECT_EQ(counts.target_hits, 0);
  EXPECT_EQ(counts.compute_waits, 4 + 3);
  EXPECT_EQ(counts.forward_stash_peak_bytes, 64 * test::kKiB);
  EXPECT_EQ(counts.backward_stash_peak_bytes, 64 * test::kKiB);
  EXPECT_EQ(counts.vain_count, 0);
  EXPECT_EQ(counts.quarantined, 0);
  saves.clear();
  EXPECT_EQ(rig.offloader.statistics().vain_count, 1) << "of `alive`: its source was at hand";
}

TEST(OffloaderLog, SaysEachDecisionInOrder) {
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = 64 * test::kKiB;
  test::Rig rig(options);
  rig.offloader.begin_run();
  std::vector<test::SaveRef> saves;
  saves.push_back(rig.pack_only(rig.world.make(4 * test::kKiB)));
  saves.push_back(rig.pack(rig.world.make(test::Rig::kTiny)));
  saves.push_back(rig.pack_only(rig.world.make(8 * test::kKiB)));
  rig.evict();
  rig.backward(saves);
  saves.clear();
  using Kind = DecisionKind;
  const std::vector<Decision> expected = {
      {Kind::kPack, 1, 0, 4 * test::kKiB},     {Kind::kEvict, 1, 0, 4 * test::kKiB},
      {Kind::kPack, 1, 2, 8 * test::kKiB},     {Kind::kEvict, 1, 2, 8 * test::kKiB},
      {Kind::kRelease, 1, 2, 8 * test::kKiB},  {Kind::kUnpack, 1, 2, 8 * test::kKiB},
      {Kind::kPrefetch, 1, 0, 4 * test::kKiB}, {Kind::kRelease, 1, 0, 4 * test::kKiB},
      {Kind::kUnpack, 1, 0, 4 * test::kKiB},   {Kind::kReturn, 1, 0, 4 * test::kKiB},
      {Kind::kReturn, 1, 2, 8 * test::kKiB}};
  EXPECT_EQ(rig.decisions, expected);
}

TEST(OffloaderLog, ARunCountsItsPacksFromZero) {
  test::Rig rig;
  std::vector<test::SaveRef> saves;
  for (int run = 0; run < 2; ++run) {
    rig.offloader.begin_run();
    for (int i = 0; i < 2; ++i) saves.push_back(rig.pack_only(rig.world.make(4 * test::kKiB)));
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (const Decision& decision : rig.decisions) {
    if (decision.kind == DecisionKind::kPack) keys.emplace_back(decision.run, decision.pack);
  }
  EXPECT_EQ(keys,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 0}, {1, 1}, {2, 0}, {2, 1}}));
}

}  // namespace
}  // namespace ferry
