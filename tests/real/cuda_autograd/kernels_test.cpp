// The virtual GPU's kernels: what a CUDA program computes is what the CPU computes, when its stream
// comes to it.
#include "vgpu/operators/kernels.h"

#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAException.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/real/cuda_autograd/trained.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;

const c10::Device kOther(c10::DeviceType::CUDA, 1);

torch::Tensor input(c10::Device device) {
  torch::manual_seed(2);
  return torch::randn({6, 8}).to(device);
}

struct Case {
  std::string name;
  std::function<torch::Tensor(torch::Tensor)> compute;
};

std::vector<Case> cases() {
  using torch::Tensor;
  return {
      {"InPlaceOnAView",
       [](const Tensor& x) {
         x.narrow(1, 2, 3).t().mul_(2);
         return x;
       }},
      {"OutThatGrows",
       [](const Tensor& x) {
         Tensor out = torch::empty({0}, x.options());
         at::mm_out(out, x, x.t());
         return out;
       }},
      {"OutOfAnotherShape",
       [](const Tensor& x) {
         Tensor out = torch::zeros({6}, x.options());
         at::sum_out(out, x, 1);
         return out;
       }},
      {"ShapeByData", [](const Tensor& x) { return x.masked_select(x > 0); }},
      {"IndexByAMask", [](const Tensor& x) { return x.index({x > 0}); }},
      {"OutByData",
       [](const Tensor& x) {
         Tensor out = torch::empty({0}, x.options().dtype(at::kLong));
         at::nonzero_out(out, x > 0);
         return out;
       }},
      {"ANumberForTheHost", [](const Tensor& x) { return x * x.max().item<double>(); }},
      {"Equality", [](const Tensor& x) { return torch::full({1}, x.equal(x) ? 1.0 : 0.0); }},
      {"ScalarOfTheCpu", [](const Tensor& x) { return x + torch::tensor(2.5); }},
      {"Wrapped", [](const Tensor& x) { return x.to(at::kHalf) * 2.5; }},
      {"IndexOfTheCpu",
       [](const Tensor& x) {
         return x.index({torch::tensor({4, 1})});
       }},
      {"Conjugated",
       [](const Tensor& x) { return at::matmul(at::complex(x, x).conj(), at::complex(x, x).t()); }},
      {"AnotherTypeAndLayout",
       [](const Tensor& x) {
         return torch::empty({8, 6}, at::kDouble).to(x.device()).copy_(x.t());
       }},
      {"ListOfTensors",
       [](const Tensor& x) {
         return torch::cat(at::_foreach_add({x, x.t().contiguous().view({6, 8})}, 1.0));
       }},
      {"SplitAndCat", [](const Tensor& x) { return torch::cat(x.chunk(4, 1), 0); }},
      {"Expanded",
       [](const Tensor& x) {
         return x.sum(0, true).expand({6, 8}).cumsum(0);
       }},
      {"Factory",
       [](const Tensor& x) {
         return torch::arange(48, x.options()).view({6, 8}) + x;
       }},
      {"Empty", [](const Tensor& x) { return x.narrow(0, 0, 0).matmul(x.t()); }},
      {"Sort", [](const Tensor& x) { return std::get<0>(x.flatten().sort()); }},
      {"BackFromTheOtherDevice",
       [](const Tensor& x) {
         return x.is_cuda() ? x.t().to(kOther).add(1).to(x.device()) : x.t() + 1;
       }},
  };
}

class KernelsCompute : public testing::TestWithParam<Case> {};

TEST_P(KernelsCompute, WhatTheCpuDoes) {
  const torch::Tensor expected = GetParam().compute(input(torch::kCPU));
  for (const Schedule& schedule : schedules()) {
    VirtualWorld world(schedule.tempo, schedule.seed);
    const torch::Tensor found = GetParam().compute(input(kGpu)).cpu();
    EXPECT_TRUE(found.equal(expected)) << schedule << "\n" << found << expected;
    EXPECT_EQ(found.strides(), expected.strides()) << schedule;
    EXPECT_EQ(hazard(world), "") << schedule;
  }
}

INSTANTIATE_TEST_SUITE_P(Aten, KernelsCompute, testing::ValuesIn(cases()),
                         [](const auto& chosen) { return chosen.param.name; });

TEST(KernelsTest, ATrainingStepHasTheCpusBitsWhereNothingIsDrawn) {
  const auto bits = [](c10::Device device) {
    Net net = make_net(device);
    for (Block& block : net->blocks) block->eval();
    return train_step(net, device, plain_block);
  };
  VirtualWorld world(Tempo::kMixed, 3);
  EXPECT_EQ(difference(bits(kGpu), bits(torch::kCPU)), "");
}

TEST(KernelsTest, RandomNumbersAreTheGeneratorsAndReplay) {
  const VirtualWorld world;
  const auto options = torch::device(kGpu);
  torch::manual_seed(4);
  const torch::Tensor first = torch::rand({100}, options);
  const torch::Tensor second = torch::rand({100}, options);
  torch::manual_seed(4);
  EXPECT_TRUE(torch::rand({100}, options).equal(first));
  EXPECT_TRUE(torch::rand({100}, options).equal(second));
  EXPECT_FALSE(first.equal(second));
  // The CPU's own generator does not move.
  torch::manual_seed(4);
  const torch::Tensor cpu = torch::rand({4});
  torch::manual_seed(4);
  torch::dropout(first, 0.5, true);
  EXPECT_TRUE(torch::rand({4}).equal(cpu));
}

TEST(KernelsTest, WorkIsQueuedAndReadsWhatIsThereThen) {
  VirtualWorld world(Tempo::kLazy, 0);
  const torch::Tensor x = torch::ones({16}, torch::device(kGpu));
  const torch::Tensor y = x + 1;
  EXPECT_GT(vgpu::counts().queued, 1);
  static_cast<float*>(y.data_ptr())[0] = 7;  // overwritten when its time comes
  EXPECT_EQ(y.sum().item<float>(), 32);
  EXPECT_EQ(hazard(world), "");
}

TEST(KernelsTest, AWaitThatIsMissingShows) {
  VirtualWorld world(Tempo::kEager, 0);
  vgpu::set_tempo(c10::cuda::CUDAStream(world.stream(0)).stream(), Tempo::kLazy);
  torch::Tensor x = torch::zeros({16}, torch::device(kGpu));
  x.fill_(5);
  VirtualWorld::set_current(world.stream(1));
  const torch::Tensor y = x * 2;
  EXPECT_EQ(y.sum().item<float>(), 0);
  EXPECT_NE(hazard(world), "");
}

TEST(KernelsTest, ASleepKeepsItsStreamBusy) {
  VirtualWorld world(Tempo::kEager, 0);
  at::cuda::sleep(1'500'000);  // a millisecond
  const torch::Tensor x = torch::ones({16}, torch::device(kGpu));
  EXPECT_GT(vgpu::counts().queued, 1);
  int device = 0;
  for (int call = 0; call < 1100; ++call) C10_CUDA_CHECK(cudaGetDevice(&device));
  EXPECT_EQ(vgpu::counts().queued, 0);
  EXPECT_EQ(x.sum().item<float>(), 16);
}

TEST(KernelsTest, WhatCannotBeComputedIsRefusedByName) {
  const VirtualWorld world;
  const torch::Tensor x = input(kGpu);
  try {
    at::_cudnn_rnn_flatten_weight({x}, 4, 8, 2, 6, 0, 1, false, false);
    FAIL() << "computed";
  } catch (const c10::NotImplementedError&) {
    FAIL() << "an error that LibTorch itself swallows";
  } catch (const c10::Error& error) {
    const std::string why = "the virtual GPU does not compute aten::_cudnn_rnn_flatten_weight";
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos);
  }
}

// As on a device: the call succeeded, and everything after it fails.
TEST(KernelsTest, AnOperatorThatFailsInItsTurnBreaksTheDevice) {
  VirtualWorld world(Tempo::kLazy, 0);
  const torch::Tensor x = input(kGpu);
  const torch::Tensor index = torch::full({1}, 99, x.options().dtype(at::kLong));
  const torch::Tensor picked = x.index_select(0, index);
  vgpu::run_everything();
  const cudaError_t broken = cudaDeviceSynchronize();
  vgpu::break_device(cudaSuccess);  // LibTorch's destructors end a process that has none left
  EXPECT_EQ(broken, cudaErrorAssert);
}

TEST(KernelsTest, MostOperatorsHaveAKernel) {
  const vgpu::Installed& installed = vgpu::install_kernels();
  EXPECT_GT(installed.computed, 1000U);
  EXPECT_LT(installed.refused, 200U);
  std::cout << "computed " << installed.computed << ", refused " << installed.refused
            << ", LibTorch's own " << installed.kept << "\n";
}

}  // namespace
}  // namespace ferry::real
