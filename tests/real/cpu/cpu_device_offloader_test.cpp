// The offloader on the CPU device, end to end: what comes back is what was saved, and nothing is
// left behind.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "shared/adaptors/observed.h"
#include "shared/offload/offloader.h"
#include "tests/real/cpu/cpu_world.h"
#include "tests/real/script.h"

namespace ferry::real {
namespace {

// Brief: small copies are made by the thread that asks for them.
enum class PaceKind { kFree, kBrief, kLazy, kEager, kRandom };

std::shared_ptr<Pace> pace_of(PaceKind kind) {
  switch (kind) {
    case PaceKind::kFree:
    case PaceKind::kBrief:
      break;
    case PaceKind::kLazy:
      return std::make_shared<LazyPace>();
    case PaceKind::kEager:
      return std::make_shared<EagerPace>();
    case PaceKind::kRandom:
      return std::make_shared<RandomPace>(42);
  }
  return nullptr;
}

using Setting = std::tuple<ReloadPool, bool, PaceKind, CopyStreams>;
using Save = std::unique_ptr<Saved<at::Tensor>>;
using CpuOffloader = Offloader<CpuDevice, ScriptAutograd>;

CpuDeviceOptions device_options(const Setting& setting) {
  CpuDeviceOptions options;
  if (std::get<1>(setting)) options = on_disk();
  options.pace = pace_of(std::get<2>(setting));
  if (std::get<2>(setting) != PaceKind::kBrief) options.brief_bytes_max = 0;
  return options;
}

CoreOptions core_options(const Setting& setting) {
  CoreOptions options;
  options.reload_pool = std::get<0>(setting);
  options.copy_streams = std::get<3>(setting);
  options.window_tensors = 2;
  return options;
}

class CpuOffload : public ::testing::TestWithParam<Setting> {
 protected:
  Save pack(const at::Tensor& x) { return offloader.hooks()->pack(x); }
  // Out of the window with all that was packed before.
  void evict() {
    for (int i = 0; i < 2; ++i) pack(at::empty({1}, at::kFloat));
  }
  void expect_nothing_left() {
    device.finish();
    const CpuDeviceUsage usage = device.usage();
    EXPECT_TRUE(offloader.empty());
    EXPECT_EQ(usage.host_bytes, 0);
    EXPECT_EQ(usage.pool_bytes, 0);
    EXPECT_EQ(usage.deferred_blocks, 0);
    EXPECT_EQ(usage.tasks, 0);
    EXPECT_EQ(offloader.statistics().quarantined, 0);
  }

  CpuDevice device{device_options(GetParam())};
  Script script;
  CpuOffloader offloader{device, ScriptAutograd(script), core_options(GetParam())};
};

std::string setting_name(const ::testing::TestParamInfo<Setting>& chosen) {
  const auto [pool, disk, pace, streams] = chosen.param;
  const std::vector<std::string> paces = {"Free", "Brief", "Lazy", "Eager", "Random"};
  const std::vector<std::string> lanes = {"TwoLanes", "OneLane", "NoLane"};
  return std::string(pool == ReloadPool::kConsumer ? "Consumer" : "CopyStream") +
         (disk ? "Disk" : "Memory") + paces[static_cast<std::size_t>(pace)] +
         lanes[static_cast<std::size_t>(streams)];
}

INSTANTIATE_TEST_SUITE_P(
    Settings, CpuOffload,
    ::testing::Combine(::testing::Values(ReloadPool::kConsumer, ReloadPool::kCopyStream),
                       ::testing::Bool(),
                       ::testing::Values(PaceKind::kFree, PaceKind::kBrief, PaceKind::kLazy,
                                         PaceKind::kEager, PaceKind::kRandom),
                       ::testing::Values(CopyStreams::kTwo, CopyStreams::kOne, CopyStreams::kNone)),
    setting_name);

TEST_P(CpuOffload, ViewsOfEveryKindComeBack) {
  std::vector<at::Tensor> expected;
  std::vector<Save> saves;
  const auto save_views = [&](const at::Tensor& x) {
    for (const at::Tensor& view :
         {x, x.transpose(1, 2), x.slice(0, 1, 2), x.select(2, 5), x.flatten().slice(0, 3, 2000, 7),
          x.select(0, 0).unsqueeze(0).expand({4, 16, 32})}) {
      expected.push_back(view.clone());
      saves.push_back(pack(view));
    }
  };
  save_views(at::randn({2, 16, 32}));
  save_views(at::randint(1000, {2, 16, 32}, at::kLong));
  save_views(at::randn({2, 16, 32}).to(at::kBFloat16));
  save_views(at::view_as_complex(at::randn({2, 16, 32, 2})));
  evict();
  EXPECT_EQ(offloader.statistics().offloaded_count, 4) << "a storage a copy";
  script.backward([&] {
    for (std::size_t i = saves.size(); i-- > 0;) {
      script.node([&] {
        const at::Tensor x = saves[i]->unpack();
        EXPECT_TRUE(at::equal(x, expected[i])) << i;
        EXPECT_EQ(x.sizes(), expected[i].sizes());
        EXPECT_EQ(x.dtype(), expected[i].dtype());
      });
      saves[i].reset();
    }
  });
  EXPECT_EQ(offloader.statistics().stash_hits, 0);
  saves.clear();
  expect_nothing_left();
}

// A retained graph, read twice, and a tensor that outlives its node.
TEST_P(CpuOffload, UnpackingAgainGivesTheSame) {
  const at::Tensor expected = at::randn({3000});
  Save save = pack(expected.clone());
  evict();
  at::Tensor escaped;
  for (int i = 0; i < 3; ++i) {
    script.backward([&] {
      script.node([&] {
        escaped = save->unpack();
        EXPECT_TRUE(at::equal(escaped, expected));
      });
    });
  }
  EXPECT_TRUE(at::equal(save->unpack(), expected)) << "outside of a backward";
  save.reset();
  evict();
  EXPECT_TRUE(at::equal(escaped, expected));
  escaped = at::Tensor();
  expect_nothing_left();
}

// Copies may be under way to and from blocks of LibTorch's when they are dropped.
TEST_P(CpuOffload, ThousandsOfRoundsLeaveNothing) {
  const bool many = !std::get<1>(GetParam()) && std::get<2>(GetParam()) == PaceKind::kFree;
  const int rounds = many ? 2000 : 50;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Save> saves;
    for (int i = 0; i < 5; ++i) saves.push_back(pack(at::full({1000 + i}, round + i, at::kFloat)));
    if (round % 3 == 0) continue;  // dropped without a backward
    script.backward([&] {
      for (std::size_t i = saves.size(); i-- > 0;) {
        script.node([&] {
          const at::Tensor x = saves[i]->unpack();
          ASSERT_EQ(x[500 + static_cast<int>(i)].item<float>(),
                    static_cast<float>(round + static_cast<int>(i)));
        });
        if (round % 2 == 0) saves[i].reset();
      }
    });
  }
  expect_nothing_left();
  EXPECT_LE(device.usage().host_cached_bytes, std::int64_t{1} << 30);
}

// One offloader, two threads: one waits for a copy that hangs (to a slow disk, say), the other is
// served all the same. And what both unpack, both have waited for.
TEST(CpuOffloadThreads, OneThatWaitsForACopyHoldsUpNobody) {
  CpuDevice device;
  Script script;
  CoreOptions options;
  options.window_bytes = 0;
  Gate gate, waiting;
  const auto log = std::make_shared<CallLog>([&](const DeviceCall& call) {
    if (call.step == Step::kEvict) waiting.open();
  });
  using Logging = Logged<CpuDevice>;
  Offloader<Logging, ScriptAutograd> offloader(Logging(device, log), ScriptAutograd(script),
                                               options);
  device.enqueue(device.lane(Lane::kDeviceToHost), [&] { gate.pass(); });
  Save first = offloader.hooks()->pack(at::full({2000}, 1, at::kInt));
  Save second;
  std::thread waits([&] { second = offloader.hooks()->pack(at::full({2000}, 2, at::kInt)); });
  waiting.pass();
  std::future<Save> third = std::async(std::launch::async, [&] {
    return offloader.hooks()->pack(at::full({2}, 3, at::kInt));  // too small to move
  });
  const auto served = third.wait_for(std::chrono::seconds(20));
  gate.open();
  EXPECT_EQ(served, std::future_status::ready) << "it waits with the thread that waits";
  waits.join();
  const auto value = [](const Save& save) { return save->unpack()[1].item<int>(); };
  EXPECT_EQ(value(third.get()), 3);
  EXPECT_EQ(value(second), 2);
  EXPECT_EQ(value(first), 1);
  EXPECT_GT(offloader.statistics().stalled_ns, 0);
}

// A target that one thread waits for is another's, too: that one waits by itself.
TEST(CpuOffloadThreads, EachWaitsForAReloadThatTheyShare) {
  CpuDevice device;
  Script script;
  CoreOptions options;
  options.window_bytes = 0;
  options.prefetch_bytes = 0;
  CpuOffloader offloader(device, ScriptAutograd(script), options);
  for (int round = 0; round < 50; ++round) {
    at::Tensor x = at::full({4000}, round, at::kInt);
    std::array<Save, 2> saves = {offloader.hooks()->pack(x), offloader.hooks()->pack(x)};
    x.reset();
    offloader.hooks()->pack(at::empty({1000}, at::kInt));
    Gate gate;
    device.enqueue(device.lane(Lane::kHostToDevice), [&] { gate.pass(); });
    std::array<std::thread, 2> threads;
    std::array<bool, 2> right{};
    script.backward([&] {
      for (std::size_t i = 0; i < 2; ++i) {
        threads[i] =
            std::thread([&, i] { right[i] = saves[i]->unpack().eq(round).all().item<bool>(); });
      }
      gate.open();
      for (std::thread& thread : threads) thread.join();
    });
    EXPECT_TRUE(right[0] && right[1]);
  }
}

// Each thread has a graph of its own, an offloader of its own, and the device in common.
TEST_P(CpuOffload, ThreadsShareTheDevice) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([this, number] {
      Script own;
      CpuOffloader mine(device, ScriptAutograd(own), core_options(GetParam()));
      for (int round = 0; round < 20; ++round) {
        std::vector<Save> saves;
        for (int i = 0; i < 6; ++i) {
          saves.push_back(mine.hooks()->pack(at::full({2000}, number * 1000 + i, at::kInt)));
        }
        own.backward([&] {
          for (std::size_t i = saves.size(); i-- > 0;) {
            own.node([&] {
              const at::Tensor x = saves[i]->unpack();
              const at::Tensor expected =
                  at::full({2000}, number * 1000 + static_cast<int>(i), at::kInt);
              EXPECT_TRUE(at::equal(x, expected));
            });
            saves[i].reset();
          }
        });
      }
      EXPECT_TRUE(mine.empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_nothing_left();
}

}  // namespace
}  // namespace ferry::real
