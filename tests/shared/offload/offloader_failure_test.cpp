// Every step of the core fails, once: the error reaches the caller, nothing is left, and the next
// step works.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/shared/offload/offloader_rig.h"

namespace ferry {
namespace {

using sim::Tensor;

// A forward and a backward that take every step there is, on two streams that compute.
class FaultyStep {
 public:
  FaultyStep(ReloadPool pool, std::int64_t prefetch_bytes, Step step, std::int64_t nth)
      : fault(std::make_shared<FaultPoint>(step, nth)),
        offloader(std::in_place, Faulty<sim::SimDevice>(world.device(), fault),
                  test::ScriptAutograd(script), options(pool, prefetch_bytes)) {}

  // Throws what reaches the caller; nothing of the step is left in its hands.
  void run() {
    const std::vector<test::SaveRef> saves = forward();
    world.machine().set_current_stream(world.stream(0));
    backward(saves);
  }

  // What could not be protected is counted, and kept for ever.
  void expect_clean() {
    EXPECT_TRUE(offloader->empty());
    EXPECT_EQ(world.hazards(), std::vector<std::string>{});
    const OffloadStatistics statistics = offloader->statistics();
    EXPECT_EQ(statistics.forward_stash_bytes, 0);
    EXPECT_EQ(statistics.backward_stash_bytes, 0);
    EXPECT_LE(statistics.quarantined, 1);
    if (statistics.quarantined == 0) world.expect_clean();
  }

  test::World world;
  test::Script script;
  std::shared_ptr<FaultPoint> fault;
  std::optional<Offloader<Faulty<sim::SimDevice>, test::ScriptAutograd>> offloader;

 private:
  static constexpr std::int64_t kBytes = 64 * test::kKiB;

  static CoreOptions options(ReloadPool pool, std::int64_t prefetch_bytes) {
    CoreOptions options;
    options.reload_pool = pool;
    options.window_tensors = 2;
    options.prefetch_bytes = prefetch_bytes;
    options.hold_bytes = 4 * kBytes;
    return options;
  }

  test::SaveRef pack(const Tensor& tensor) {
    contents_.push_back(world.contents(tensor));
    return offloader->hooks()->pack(tensor);
  }

  std::vector<test::SaveRef> forward() {
    offloader->begin_run();
    contents_.clear();
    std::vector<test::SaveRef> saves;
    for (int i = 0; i < 4; ++i) {
      const Tensor x = world.make(kBytes);
      saves.push_back(pack(x));
      saves.push_back(pack(x));  // shared
    }
    // Of stream 0's pool, packed on stream 1: its eviction is left to the pool.
    sim::Machine& machine = world.machine();
    Tensor x = world.make(kBytes);
    machine.wait(Step::kUser, world.stream(1), machine.record(Step::kUser, world.stream(0)));
    machine.set_current_stream(world.stream(1));
    saves.push_back(pack(x));
    x.reset();
    for (int i = 0; i < 3; ++i) saves.push_back(pack(world.make(kBytes)));
    return saves;
  }

  // Nodes run on the streams of their forward, but of two saves of a storage one is used on stream
  // 1; a tensor escapes its node; the oldest are prefetched in vain.
  void backward(const std::vector<test::SaveRef>& saves) {
    Tensor escaped;
    script.backward([&] {
      for (std::size_t i = saves.size(); i-- > 2;) {
        world.machine().set_current_stream(world.stream(i < 8 ? i % 2 : 1));
        script.node([&] {
          const Tensor tensor = saves[i]->unpack();
          world.use(tensor);
          EXPECT_EQ(world.contents(tensor), contents_[i]);
          if (i == 4) escaped = tensor;
        });
      }
    });
    world.machine().set_current_stream(world.stream(0));
    world.use(escaped);
  }

  std::vector<std::uint64_t> contents_;
};

// Where the core is already letting go, an error has nobody to reach: it waits in another way.
bool lets_go(Step step) {
  return step == Step::kAbandon || step == Step::kEscaped || step == Step::kNodeDone ||
         step == Step::kReleaseAfterNode || step == Step::kDiscard;
}

using Case = std::tuple<ReloadPool, std::int64_t, std::size_t, std::int64_t>;

class OffloaderFailure : public ::testing::TestWithParam<Case> {};

TEST_P(OffloaderFailure, ReachesTheCallerAndTheNextStepWorks) {
  const auto [pool, prefetch_bytes, number, nth] = GetParam();
  const Step step = static_cast<Step>(number);
  FaultyStep steps(pool, prefetch_bytes, step, nth);
  bool caught = false;
  try {
    steps.run();
  } catch (const InjectedFault& error) {
    caught = true;
    EXPECT_EQ(error.step(), step);
    EXPECT_EQ(error.what(), "injected fault at " + std::string(name(step)));
  }
  if (!steps.fault->fired()) return;  // TakesEveryStep sees to it that this is not always so
  if (prefetch_bytes == 0 && !lets_go(step)) {
    EXPECT_TRUE(caught);
  }
  EXPECT_EQ(steps.script.tasks_open(), 0);
  steps.expect_clean();
  steps.world.machine().set_current_stream(steps.world.stream(0));
  EXPECT_NO_THROW(steps.run());
  steps.expect_clean();
  steps.offloader.reset();
  steps.world.expect_clean();
}

std::string case_name(const ::testing::TestParamInfo<Case>& chosen) {
  const auto [pool, prefetch_bytes, number, nth] = chosen.param;
  std::string text(name(static_cast<Step>(number)));
  for (char& c : text) {
    if (c == ' ') c = '_';
  }
  return text +
         (nth == 0   ? "_first"
          : nth == 1 ? "_second"
                     : "_fifth") +
         (pool == ReloadPool::kConsumer ? "_Consumer" : "_CopyStream") +
         (prefetch_bytes > 0 ? "_Prefetch" : "");
}

INSTANTIATE_TEST_SUITE_P(Sweep, OffloaderFailure,
                         ::testing::Combine(test::kBothPools,
                                            ::testing::Values(std::int64_t{0}, 128 * test::kKiB),
                                            ::testing::Range<std::size_t>(1, kOffloadSteps),
                                            ::testing::Values(0, 1, 4)),
                         case_name);

// The sweep's step takes every step of the offloader that can fail, under one option or another.
TEST(OffloaderFailureSweep, TakesEveryStep) {
  for (std::size_t number = 1; number < kOffloadSteps; ++number) {
    const Step step = static_cast<Step>(number);
    if (step == Step::kHostReturn) continue;  // never fails
    bool fired = false;
    for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
      for (const std::int64_t prefetch_bytes : {std::int64_t{0}, 128 * test::kKiB}) {
        FaultyStep steps(pool, prefetch_bytes, step, 0);
        try {
          steps.run();
        } catch (const InjectedFault&) {
        }
        fired = fired || steps.fault->fired();
      }
    }
    EXPECT_TRUE(fired) << name(step);
  }
}

// --- Out of memory

TEST(OffloaderMemory, OutOfDeviceMemoryInAReloadReachesTheCallerAndMayBeRetried) {
  for (const ReloadPool pool : {ReloadPool::kConsumer, ReloadPool::kCopyStream}) {
    sim::MachineOptions machine;
    machine.device_bytes = 64 * test::kMiB;
    CoreOptions options = test::eager_options();
    options.reload_pool = pool;
    test::Rig rig(options, machine);
    Tensor x = rig.world.make(40 * test::kMiB);
    const std::uint64_t contents = rig.world.contents(x);
    std::vector<test::SaveRef> saves;
    saves.push_back(rig.pack_only(std::move(x)));
    rig.evict();
    Tensor hog = rig.world.make(40 * test::kMiB);
    EXPECT_THROW(rig.backward(saves), sim::OutOfMemory);
    hog.reset();
    EXPECT_EQ(rig.backward(saves), std::vector{contents});
    saves.clear();
    rig.expect_clean();
  }
}

TEST(OffloaderMemory, APrefetchThatDoesNotFitIsNoError) {
  sim::MachineOptions machine;
  machine.device_bytes = 100 * test::kMiB;
  CoreOptions options = test::eager_options();
  options.prefetch_bytes = kUnlimited;
  test::Rig rig(options, machine);
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 5; ++i) {
    saves.push_back(rig.pack_only(rig.world.make(40 * test::kMiB)));
    rig.evict();
  }
  EXPECT_NO_THROW(rig.backward(saves));
  saves.clear();
  rig.expect_clean();
}

TEST(OffloaderMemory, OutOfHostMemoryInAPackReachesTheCaller) {
  sim::MachineOptions machine;
  machine.host_bytes = test::kMiB;
  test::Rig rig(test::eager_options(), machine);
  test::SaveRef first = rig.pack_only(rig.world.make(test::kMiB));
  const Tensor second = rig.world.make(test::kMiB);
  EXPECT_THROW(rig.pack(second), sim::OutOfHostMemory);
  first.reset();
  test::SaveRef again = rig.pack(second);
  EXPECT_EQ(rig.offloader.statistics().offloaded_count, 2);
}

// A full host need not end a training: what has no room there stays where it is.
TEST(OffloaderMemory, WhatTheHostHasNoRoomForIsKept) {
  sim::MachineOptions machine;
  machine.host_bytes = test::kMiB;
  CoreOptions options = test::eager_options();
  options.keep_when_full = true;
  test::Rig rig(options, machine);
  std::vector<std::uint64_t> contents;
  std::vector<test::SaveRef> saves;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = rig.world.make(test::kMiB);
    contents.push_back(rig.world.contents(x));
    saves.push_back(rig.pack(x));
  }
  EXPECT_EQ(rig.offloader.statistics().offloaded_count, 1);
  EXPECT_EQ(rig.offloader.statistics().kept, 2);
  EXPECT_EQ(rig.offloader.statistics().full, 2);
  rig.evict();
  EXPECT_EQ(rig.backward(saves), contents);
  saves.clear();
  // With the room back, tensors move again.
  test::SaveRef later = rig.pack(rig.world.make(test::kMiB));
  EXPECT_EQ(rig.offloader.statistics().offloaded_count, 2);
  EXPECT_EQ(rig.offloader.statistics().full, 2);
  later.reset();
  rig.expect_clean();
}

}  // namespace
}  // namespace ferry
