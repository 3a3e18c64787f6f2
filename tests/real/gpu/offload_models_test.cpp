// Offload on a GPU under LibTorch's own autograd: the bits of plain training, something moved, and
// nothing left.
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "tests/real/gpu/trained.h"

namespace ferry::real {
namespace {

struct Setting {
  const char* name;
  std::function<void(OffloadOptions&)> choose;
};
std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = {
      {"Defaults", [](OffloadOptions&) {}},
      {"NoWindow", [](OffloadOptions& options) { options.window(0).prefetch(0).hold(0); }},
      {"SmallWindow", [](OffloadOptions& options) { options.window(1 << 20).prefetch(1 << 20); }},
      {"Everything", [](OffloadOptions& options) { options.min_bytes(0).window(0); }},
      {"OneStream",
       [](OffloadOptions& options) {
         options.window_tensors(5).prefetch(0).copy_streams(CopyStreams::kOne);
         options.reload_pool(ReloadPool::kCopyStream);
       }},
      {"Pageable", [](OffloadOptions& options) { options.pinned(false).window(0); }},
  };
  return all;
}

class OffloadOnGpu : public testing::TestWithParam<std::tuple<TrainedModel, Setting>> {};

TEST_P(OffloadOnGpu, GivesThePlainStepsBitsAndLeavesNothing) {
  Trained plain(std::get<0>(GetParam()));
  const Tensors expected = plain.step();
  ASSERT_EQ(difference(expected, plain.step()), "") << "LibTorch's own steps differ";

  OffloadOptions options;
  options.device(at::Device(at::kCUDA, 0));
  std::get<1>(GetParam()).choose(options);
  Offload offload(options);
  Trained ours(std::get<0>(GetParam()));
  offload.exempt(ours.module());
  for (int step = 0; step < 3; ++step) {
    const OffloadGuard guard(offload);
    EXPECT_EQ(difference(expected, ours.step()), "") << "step " << step;
  }
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_TRUE(offload.empty());
}

INSTANTIATE_TEST_SUITE_P(Gpu, OffloadOnGpu,
                         testing::Combine(testing::Values(TrainedModel::kGpt,
                                                          TrainedModel::kGptWithDropout,
                                                          TrainedModel::kResnet),
                                          testing::ValuesIn(settings())),
                         [](const auto& chosen) {
                           return name(std::get<0>(chosen.param)) + std::get<1>(chosen.param).name;
                         });

// Two threads, two streams, one Offload: what one packs is not the other's.
TEST(OffloadOnGpuStreams, ServesThreadsOnStreamsOfTheirOwn) {
  Trained plain(TrainedModel::kGpt);
  const Tensors expected = plain.gradients();
  OffloadOptions options;
  options.device(at::Device(at::kCUDA, 0)).window(0);
  Offload offload(options);
  Trained ours[2] = {Trained(TrainedModel::kGpt), Trained(TrainedModel::kGpt)};
  std::string wrong[2];
  const auto train = [&](std::size_t which) {
    const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
    for (int step = 0; step < 5 && wrong[which].empty(); ++step) {
      const OffloadGuard guard(offload);
      wrong[which] = difference(expected, ours[which].gradients());
    }
    C10_CUDA_CHECK(cudaDeviceSynchronize());
  };
  C10_CUDA_CHECK(cudaDeviceSynchronize());  // what the default stream made
  std::thread other(train, 0);
  train(1);
  other.join();
  EXPECT_EQ(wrong[0], "");
  EXPECT_EQ(wrong[1], "");
  EXPECT_TRUE(offload.empty());
}

}  // namespace
}  // namespace ferry::real
