// An OffloadGuard over LibTorch's own autograd on the virtual GPU: the plain step's bits, whenever
// the device does its work, and nothing that the checkers object to.
#include "ferry/offload.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/real/cuda_autograd/trained.h"

namespace ferry::real {
namespace {

struct Setting {
  std::string name;
  OffloadOptions options;
};

OffloadOptions on_gpu() { return OffloadOptions().device(kGpu).min_bytes(1); }

std::vector<Setting> settings() {
  return {{"Defaults", OffloadOptions().device(kGpu)},
          {"TheTensorsDevice", OffloadOptions().min_bytes(1)},
          {"NoWindow", on_gpu().window(0).prefetch(0).hold(0)},
          {"OneTensor", on_gpu().window_tensors(1).prefetch(0).hold(0)},
          {"OneTensorAhead", on_gpu().window_tensors(1).prefetch(1 << 20)},
          {"LargeOnesAlone", on_gpu().min_bytes(8 << 10).window(0).prefetch(16 << 10)},
          {"OneStreamItsPool",
           on_gpu().window(0).copy_streams(CopyStreams::kOne).reload_pool(ReloadPool::kCopyStream)},
          {"Pageable", on_gpu().window(0).pinned(false)}};
}

class OffloadOnTheVirtualGpu : public testing::TestWithParam<Setting> {};

TEST_P(OffloadOnTheVirtualGpu, GivesThePlainStepsBits) {
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    Net net = make_net(kGpu);
    Offload offload(GetParam().options);
    offload.exempt(*net);
    for (int step = 0; step < 2; ++step) {
      const OffloadGuard guard(offload);
      EXPECT_EQ(difference(train_step(net, kGpu, plain_block), plain_bits()), "") << schedule;
    }
    EXPECT_EQ(hazard(world), "") << schedule;
    EXPECT_GT(offload.statistics().offloaded_count, 5);
    EXPECT_TRUE(offload.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, OffloadOnTheVirtualGpu, testing::ValuesIn(settings()),
                         [](const auto& chosen) { return chosen.param.name; });

}  // namespace
}  // namespace ferry::real
