// The offloader on a real CUDA device, under load.
//
// Sleeps make one stream late: the lanes, so that whoever does not wait for a copy reads or reuses
// bytes too early; or the stream that computes, so that a copy which does not wait reads too early.
// That such a mistake would show is shown: a core with one wait dropped gives wrong bytes.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "tests/real/gpu/gpu_world.h"
#include "tests/real/script.h"

namespace ferry::real {
namespace {

enum class Late { kNobody, kLanes, kCompute };

constexpr std::int64_t kElements = 1 << 18;  // 1 MiB
constexpr int kTensors = 6;

class Load {
 public:
  using D = Bent<CudaDevice>;

  Load(ReloadPool pool, Late late, std::optional<Mutation> mutation)
      : late_(late),
        offloader_(D(device_, mutation), ScriptAutograd(script_), options(pool)),
        wrong_(at::zeros({}, at::device(at::kCUDA).dtype(at::kLong))) {}

  void round() {
    offloader_.begin_run();
    std::vector<std::pair<std::unique_ptr<Saved<at::Tensor>>, std::int32_t>> saves;
    for (int i = 0; i < kTensors; ++i) {
      delay(Lane::kDeviceToHost);
      at::Tensor tensor = world_.make({kElements});
      saves.emplace_back(offloader_.hooks()->pack(tensor), world_.last_serial());
      tensor.reset();
      world_.make({kElements});  // takes the block that the window let go of
    }
    script_.backward([&] {
      while (!saves.empty()) {
        delay(Lane::kHostToDevice);
        script_.node([&] {
          const at::Tensor tensor = saves.back().first->unpack();
          wrong_.add_(tensor.ne(GpuWorld::values({kElements}, saves.back().second)).sum());
        });
        saves.pop_back();
        world_.make({kElements});
      }
    });
  }
  std::int64_t wrong() { return wrong_.item<std::int64_t>(); }
  bool empty() const { return offloader_.empty(); }
  CudaStatistics left() {
    world_.finish();
    device_.trim();
    return device_.statistics();
  }

 private:
  static CoreOptions options(ReloadPool pool) {
    CoreOptions options;
    options.reload_pool = pool;
    options.window_tensors = 1;
    options.prefetch_bytes = 2 * kElements * 4;
    return options;
  }
  void delay(Lane lane) {
    if (late_ == Late::kLanes) GpuWorld::sleep_on(device_.lane(lane), 1);
    if (late_ == Late::kCompute) GpuWorld::sleep_ms(1);
  }

  const Late late_;
  GpuWorld world_;
  CudaDevice device_{CudaDeviceOptions{.index = 0}};
  Script script_;
  Offloader<D, ScriptAutograd> offloader_;
  at::Tensor wrong_;
};

struct Setting {
  ReloadPool pool;
  Late late;
};
class OffloaderOnGpu : public testing::TestWithParam<Setting> {};

TEST_P(OffloaderOnGpu, ReadsWhatWasSavedAndLeavesNothing) {
  Load load(GetParam().pool, GetParam().late, std::nullopt);
  for (int i = 0; i < 50; ++i) load.round();
  EXPECT_EQ(load.wrong(), 0);
  EXPECT_TRUE(load.empty());
  const CudaStatistics left = load.left();
  EXPECT_EQ(left.host_in_use_bytes, 0);
  EXPECT_EQ(left.pinned_bytes, 0);
}

std::string setting_name(const testing::TestParamInfo<Setting>& chosen) {
  const std::string pool =
      chosen.param.pool == ReloadPool::kConsumer ? "ConsumerPool" : "CopyStreamPool";
  const char* const late[] = {"NobodyLate", "LanesLate", "ComputeLate"};
  return pool + late[static_cast<int>(chosen.param.late)];
}
INSTANTIATE_TEST_SUITE_P(Gpu, OffloaderOnGpu,
                         testing::Values(Setting{ReloadPool::kConsumer, Late::kNobody},
                                         Setting{ReloadPool::kConsumer, Late::kLanes},
                                         Setting{ReloadPool::kConsumer, Late::kCompute},
                                         Setting{ReloadPool::kCopyStream, Late::kNobody},
                                         Setting{ReloadPool::kCopyStream, Late::kLanes},
                                         Setting{ReloadPool::kCopyStream, Late::kCompute}),
                         setting_name);

struct Wrong {
  Step step;
  Late late;
};
class AMissingWaitOnGpu : public testing::TestWithParam<Wrong> {};

TEST_P(AMissingWaitOnGpu, GivesWrongBytes) {
  Load load(ReloadPool::kConsumer, GetParam().late, Mutation{GetParam().step, Bend::kDrop});
  for (int i = 0; i < 10; ++i) load.round();
  EXPECT_GT(load.wrong(), 0) << name(GetParam().step) << " is not missed: the load shows nothing";
}
INSTANTIATE_TEST_SUITE_P(Gpu, AMissingWaitOnGpu,
                         testing::Values(Wrong{Step::kOffloadAfterProducer, Late::kCompute},
                                         Wrong{Step::kEvict, Late::kLanes},
                                         Wrong{Step::kConsume, Late::kLanes}));

// Prints what the link gives; the bounds are far below any GPU's, and fail only where a copy is not
// what it should be.
TEST(HostMemoryOnGpu, CopiesAtTheLinksRate) {
  constexpr std::int64_t kBytes = std::int64_t{256} << 20;
  constexpr int kCopies = 8;
  CudaDevice device({.index = 0});
  const c10::Stream lane = device.lane(Lane::kDeviceToHost);
  const c10::Storage storage = device.allocate(Step::kUser, kBytes, lane);
  for (const HostMemory kind : {HostMemory::kPinned, HostMemory::kPageable}) {
    auto host = device.allocate_host(Step::kUser, kBytes, kind);
    for (const bool out : {true, false}) {
      const auto copy = [&] {
        if (out) {
          device.offload(Step::kUser, storage, 0, host, lane);
        } else {
          device.reload(Step::kUser, host, storage, lane);
        }
      };
      copy();
      GpuWorld::finish();
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kCopies; ++i) copy();
      GpuWorld::finish();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      const double gb_per_s = kBytes * kCopies / took.count() / 1e9;
      std::cout << (kind == HostMemory::kPinned ? "pinned" : "pageable")
                << (out ? " to the host: " : " to the device: ") << gb_per_s << " GB/s\n";
      EXPECT_GT(gb_per_s, kind == HostMemory::kPinned ? 2.0 : 0.1);
    }
    const auto end = device.record(Step::kUser, lane);
    device.release_host(Step::kUser, std::move(host), {&end, 1});
  }
}

}  // namespace
}  // namespace ferry::real
