// A small net to train on the virtual GPU, and runs of it under a tempo, with the checkers
// watching.
//
// It has what training has: linear layers, layer norm, attention, a convolution with batch norm,
// dropout by the CUDA generator, a loss over classes. Bits are judged against plain LibTorch's on
// the same device at an eager tempo, where nothing is late.
#pragma once

#include <torch/cuda.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/real/cuda/world.h"

namespace ferry::real {

using Tensors = std::vector<torch::Tensor>;

struct BlockImpl : torch::nn::Module {
  static constexpr std::int64_t kWidth = 32;
  BlockImpl()
      : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))),
        qkv(register_module("qkv", torch::nn::Linear(kWidth, 3 * kWidth))),
        in(register_module("in", torch::nn::Linear(kWidth, 2 * kWidth))),
        out(register_module("out", torch::nn::Linear(2 * kWidth, kWidth))) {}
  torch::Tensor forward(torch::Tensor x) {  // [batch, time, width]
    const Tensors parts = qkv(norm(x)).unsqueeze(1).chunk(3, -1);
    x = x + at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true).squeeze(1);
    return x + torch::dropout(out(torch::gelu(in(x))), 0.25, is_training());
  }
  torch::nn::LayerNorm norm;
  torch::nn::Linear qkv, in, out;
};
TORCH_MODULE(Block);

struct NetImpl : torch::nn::Module {
  using CallBlock = std::function<torch::Tensor(Block&, torch::Tensor)>;
  NetImpl()
      : conv(register_module("conv", torch::nn::Conv1d(BlockImpl::kWidth, BlockImpl::kWidth, 3))),
        batch_norm(register_module("batch_norm", torch::nn::BatchNorm1d(BlockImpl::kWidth))) {
    for (int i = 0; i < 3; ++i) blocks.push_back(register_module(std::to_string(i), Block()));
  }
  torch::Tensor loss(torch::Tensor x, const torch::Tensor& classes, const CallBlock& call) {
    // In a row: reentrant checkpoints give a gradient the layout of their input, and the sums of
    // another layout round otherwise, on a CPU as well.
    x = batch_norm(conv(x.transpose(1, 2))).relu().transpose(1, 2).contiguous();
    for (Block& block : blocks) x = call(block, x);
    return torch::nn::functional::cross_entropy(x.flatten(0, 1), classes.flatten());
  }
  torch::nn::Conv1d conv;
  torch::nn::BatchNorm1d batch_norm;
  std::vector<Block> blocks;
};
TORCH_MODULE(Net);

inline Net make_net(c10::Device device) {
  torch::manual_seed(3);
  Net net;
  net->to(device);
  return net;
}

inline torch::Tensor plain_block(Block& block, torch::Tensor x) {
  return block->forward(std::move(x));
}

// The loss and the gradients of one step, on the CPU.
inline Tensors train_step(Net& net, c10::Device device, const NetImpl::CallBlock& call) {
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({4, 10, BlockImpl::kWidth}).to(device);
  const torch::Tensor classes = torch::randint(BlockImpl::kWidth, {4, 8}).to(device);
  net->zero_grad();
  const torch::Tensor loss = net->loss(x, classes, call);
  loss.backward();
  Tensors bits = {loss.detach().cpu()};
  for (const torch::Tensor& parameter : net->parameters()) bits.push_back(parameter.grad().cpu());
  return bits;
}

inline const c10::Device kGpu(c10::DeviceType::CUDA, 0);

inline const Tensors& plain_bits() {
  static const Tensors bits = [] {
    const VirtualWorld world;
    Net net = make_net(kGpu);
    return train_step(net, kGpu, plain_block);
  }();
  return bits;
}

// Empty: none.
inline std::string difference(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return "another number of tensors";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) {
      return "tensor " + std::to_string(i) + " differs by " +
             std::to_string((a[i] - b[i]).abs().max().item<double>());
    }
  }
  return "";
}

struct Schedule {
  vgpu::Tempo tempo;
  std::uint64_t seed;
};

inline std::vector<Schedule> schedules() {
  using vgpu::Tempo;
  std::vector<Schedule> all = {{Tempo::kEager, 0}, {Tempo::kLazy, 0}};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) all.push_back({Tempo::kMixed, seed});
  all.push_back({Tempo::kRandom, 7});
  return all;
}
inline std::ostream& operator<<(std::ostream& out, const Schedule& schedule) {
  constexpr const char* kNames[] = {"eager", "lazy", "random", "mixed"};
  return out << kNames[static_cast<std::size_t>(schedule.tempo)] << " " << schedule.seed;
}

// The first of the checkers' objections, or nothing.
inline std::string hazard(const VirtualWorld& world) {
  const auto hazards = world.hazards();
  return hazards.empty() ? "" : hazards.front();
}

}  // namespace ferry::real
