// A pipeline on GPUs: several stages that share one, and one stage on each where there are several.
// Its gradients are the bits of a loop over the micro-batches.
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "ferry/offload.h"
#include "ferry/pipe.h"
#include "tests/real/gpu/trained.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kChunks = 4;
constexpr int kStages = 3;

at::Tensor loss_of(const at::Tensor& y, const at::Tensor& target) {
  return torch::mse_loss(y, target);
}

torch::nn::Sequential layers() {
  torch::manual_seed(5);
  torch::nn::Sequential chain;
  for (int i = 0; i < 6; ++i) {
    chain->push_back(torch::nn::Linear(96, 96));
    chain->push_back(torch::nn::GELU());
  }
  chain->to(at::kCUDA);
  return chain;
}

struct Data {
  at::Tensor input =
      torch::arange(8 * 96, at::device(at::kCUDA).dtype(at::kFloat)).view({8, 96}).sin();
  at::Tensor target = input.cos();
};

Tensors gradients(const torch::nn::Sequential& chain, const at::Tensor& loss) {
  Tensors results = {loss.detach().to(at::kCPU)};
  for (const at::Tensor& parameter : chain->parameters()) {
    results.push_back(parameter.grad().to(at::kCPU));
  }
  return results;
}

Tensors looped(const Data& data) {
  torch::nn::Sequential chain = layers();
  const auto inputs = data.input.chunk(kChunks);
  const auto targets = data.target.chunk(kChunks);
  at::Tensor sum = torch::zeros({}, at::kCUDA);
  for (std::int64_t i = 0; i < kChunks; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const at::Tensor loss = loss_of(chain->forward(inputs[at]), targets[at]) / kChunks;
    loss.backward();
    sum = sum + loss.detach();
  }
  return gradients(chain, sum);
}

PipeOptions options_for(std::vector<torch::Device> devices, CheckpointMode mode,
                        ScheduleKind schedule) {
  PipeOptions options;
  options.balance({5, 4, 3}).microbatches(kChunks).devices(std::move(devices));
  options.checkpoint(mode).schedule(schedule);
  return options;
}

std::vector<torch::Device> one_gpu() {
  return std::vector<torch::Device>(kStages, torch::Device(at::kCUDA, 0));
}
// In turns.
std::vector<torch::Device> every_gpu() {
  std::vector<torch::Device> devices;
  for (int stage = 0; stage < kStages; ++stage) {
    const int device = stage % static_cast<int>(torch::cuda::device_count());
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  }
  return devices;
}

class PipeOnGpu : public testing::TestWithParam<std::tuple<CheckpointMode, ScheduleKind>> {
 protected:
  static void expect_looped(const std::vector<torch::Device>& devices) {
    const Data data;
    const Tensors expected = looped(data);
    const auto [mode, schedule] = GetParam();
    Pipe pipe(layers(), options_for(devices, mode, schedule));
    for (int step = 0; step < 2; ++step) {
      pipe.layers()->zero_grad();
      const at::Tensor loss = pipe.step(data.input, data.target, loss_of);
      EXPECT_EQ(difference(expected, gradients(pipe.layers(), loss)), "") << "step " << step;
    }
  }
};

TEST_P(PipeOnGpu, OfOneDeviceGivesTheLoopsBits) { expect_looped(one_gpu()); }

TEST_P(PipeOnGpu, OverTheDevicesGivesTheLoopsBits) {
  if (torch::cuda::device_count() < 2) GTEST_SKIP() << "no GPU: there is one, this needs two";
  expect_looped(every_gpu());
}

TEST_P(PipeOnGpu, UnderAnOffloaderGivesTheLoopsBits) {
  OffloadOptions options;
  options.device(at::Device(at::kCUDA, 0)).window(0).min_bytes(0);
  Offload offload(options);
  {
    const OffloadGuard guard(offload);
    expect_looped(one_gpu());
  }
  EXPECT_GT(offload.statistics().offloaded_count, 0);
  EXPECT_TRUE(offload.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Gpu, PipeOnGpu,
    testing::Combine(testing::Values(CheckpointMode::kNever, CheckpointMode::kExceptLast,
                                     CheckpointMode::kAlways),
                     testing::Values(ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward)),
    [](const auto& chosen) {
      std::string text(ferry::name(std::get<0>(chosen.param)));
      text += std::get<1>(chosen.param) == ScheduleKind::kGpipe ? "_gpipe" : "_1f1b";
      return text;
    });

}  // namespace
}  // namespace ferry::real
