// Pipelines on the virtual GPU, of one device and of two: the bits of a loop over the
// micro-batches.
#include "ferry/pipe.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "tests/real/cuda_autograd/trained.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kChunks = 4;
constexpr std::int64_t kWidth = 24;

torch::nn::Sequential layers() {
  torch::manual_seed(3);
  torch::nn::Sequential chain;
  for (int i = 0; i < 4; ++i) {
    chain->push_back(torch::nn::Linear(kWidth, kWidth));
    chain->push_back(torch::nn::Tanh());
  }
  return chain;
}

torch::Tensor loss_of(const torch::Tensor& y, const torch::Tensor& target) {
  return torch::mse_loss(y, target);
}

struct Data {
  explicit Data(c10::Device last) {
    torch::manual_seed(9);
    input = torch::randn({8, kWidth}).to(kGpu);
    target = torch::randn({8, kWidth}).to(last);
  }
  torch::Tensor input;
  torch::Tensor target;
};

Tensors bits_of(const torch::nn::Sequential& chain, const torch::Tensor& loss) {
  Tensors bits = {loss.detach().cpu()};
  for (const torch::Tensor& parameter : chain->parameters()) bits.push_back(parameter.grad().cpu());
  return bits;
}

const Tensors& looped() {
  static const Tensors bits = [] {
    const VirtualWorld world;
    torch::nn::Sequential chain = layers();
    chain->to(kGpu);
    const Data data(kGpu);
    torch::Tensor sum = torch::zeros({}, kGpu);
    for (std::int64_t i = 0; i < kChunks; ++i) {
      const torch::Tensor loss =
          loss_of(chain->forward(data.input.chunk(kChunks)[static_cast<std::size_t>(i)]),
                  data.target.chunk(kChunks)[static_cast<std::size_t>(i)]) /
          kChunks;
      loss.backward();
      sum = sum + loss.detach();
    }
    return bits_of(chain, sum);
  }();
  return bits;
}

using Setting = std::tuple<int, CheckpointMode, ScheduleKind, bool>;  // devices; offloaded
class PipeOnTheVirtualGpu : public testing::TestWithParam<Setting> {};

TEST_P(PipeOnTheVirtualGpu, GivesTheLoopsBits) {
  const auto [count, checkpointed, kind, offloaded] = GetParam();
  const c10::Device last(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(count - 1));
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    {
      Offload offload(OffloadOptions().device(kGpu).min_bytes(1).window(0));
      Pipe pipe(layers(), PipeOptions()
                              .balance({4, 4})
                              .devices({kGpu, last})
                              .microbatches(kChunks)
                              .checkpoint(checkpointed)
                              .schedule(kind));
      const Data data(last);
      std::optional<OffloadGuard> guard;
      if (offloaded) guard.emplace(offload);
      const torch::Tensor loss = pipe.step(data.input, data.target, loss_of);
      EXPECT_EQ(difference(bits_of(pipe.layers(), loss), looped()), "") << schedule;
      guard.reset();
      EXPECT_EQ(offload.statistics().offloaded_count > 0, offloaded);
      EXPECT_TRUE(offload.empty());
    }
    EXPECT_EQ(hazard(world), "") << schedule;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, PipeOnTheVirtualGpu,
    testing::Combine(testing::Values(1, 2),
                     testing::Values(CheckpointMode::kNever, CheckpointMode::kAlways),
                     testing::Values(ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward),
                     testing::Bool()));

// GPipe by autograd's own backward. It adds the micro-batches up in another order than one batch's
// sums have: near, and not the same bits.
TEST(PipeOnTheVirtualGpuForward, GivesTheGradientsOfThePlainChain) {
  const c10::Device other(c10::DeviceType::CUDA, 1);
  const auto results = [](const torch::Tensor& y, const Tensors& parameters) {
    y.square().sum().backward();
    Tensors all = {y.detach().cpu()};
    for (const torch::Tensor& parameter : parameters) all.push_back(parameter.grad().cpu());
    return all;
  };
  Tensors plain;
  {
    const VirtualWorld world;
    torch::nn::Sequential chain = layers();
    chain->to(kGpu);
    plain = results(chain->forward(Data(kGpu).input), chain->parameters());
  }
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    Pipe pipe(layers(), PipeOptions().balance({4, 4}).devices({kGpu, other}).microbatches(kChunks));
    const Tensors piped = results(pipe.forward(Data(kGpu).input), pipe.parameters());
    ASSERT_EQ(piped.size(), plain.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_TRUE(piped[i].allclose(plain[i], 1e-4, 1e-5)) << schedule << ": " << i;
    }
    EXPECT_EQ(hazard(world), "") << schedule;
  }
}

}  // namespace
}  // namespace ferry::real
