// Random training rounds on the virtual GPU, through LibTorch's own autograd.
//
// A round makes a few chains of ops, each of a size and on a stream of its own, lets go of what the
// graph alone is to keep, and lets short-lived tensors scribble over the blocks that were freed.
// Backward scribbles between its nodes; some nodes let what they unpacked live on, and a later node
// of the same stream reads it; some chains are not asked for, some graphs die without a backward,
// some go backward twice, some backwards fail in the middle. Everything is drawn from a number, so
// a run with offloading meets what a plain run met: the results are to be the same bits.
#pragma once

#include <ATen/cuda/CUDAEvent.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/real/cuda_autograd/trained.h"
#include "tests/real/dice.h"

namespace ferry::real {

// What nodes let live on, by stream.
struct Late {
  std::vector<torch::Tensor> tensors[2];
  Tensors read;  // sums of what was read late
};

// Twice its input; backward keeps what it unpacked.
struct Keeping : torch::autograd::Function<Keeping> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               std::int64_t late, std::int64_t stream) {
    context->save_for_backward({x});
    context->saved_data["late"] = late;
    context->saved_data["stream"] = stream;
    return x * 2;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const torch::Tensor x = context->get_saved_variables()[0];
    auto* const late = reinterpret_cast<Late*>(context->saved_data["late"].toInt());
    late->tensors[context->saved_data["stream"].toInt()].push_back(x);
    return {gradients[0] * 2 + x * 0, torch::Tensor(), torch::Tensor()};
  }
};

class RandomGraph {
 public:
  RandomGraph(std::uint64_t seed, VirtualWorld& world) : draw_(seed * 2 + 1), world_(world) {}

  // Called with the offloader's hooks in force. Results stay on the device until `results`.
  void forward() {
    draw_round();
    for (Chain& chain : chains_) forward(chain);
    VirtualWorld::set_current(world_.stream(0));
    follow(0, 1);
  }
  void backward() {
    if (dies_) return chains_.clear();
    std::vector<torch::Tensor> wanted;
    for (const Chain& chain : chains_) {
      if (chain.wanted) wanted.push_back(chain.sum);
    }
    try {
      for (int times = twice_ ? 2 : 1; times > 0 && !wanted.empty(); --times) {
        torch::autograd::backward(wanted, {}, /*retain_graph=*/times > 1);
      }
    } catch (const std::runtime_error&) {  // the program's own
      if (!fails_) throw;
    }
    for (std::int64_t stream : {1, 0}) {
      VirtualWorld::set_current(world_.stream(static_cast<int>(stream)));
      read_late(stream);
      for (const Chain& chain : chains_) scribble(chain.elements);
      if (stream == 1) follow(0, 1);
    }
    for (const Chain& chain : chains_) {
      if (chain.leaf.grad().defined()) results_.push_back(chain.leaf.grad());
    }
    chains_.clear();
    for (auto& tensors : late_->tensors) tensors.clear();
  }
  // Of all rounds so far, on the CPU.
  Tensors results() {
    Tensors all;
    for (const Tensors* each : {&results_, &late_->read}) {
      for (const torch::Tensor& tensor : *each) all.push_back(tensor.cpu());
    }
    return all;
  }

 private:
  struct Chain {
    std::int64_t elements = 0;
    int stream = 0;
    bool wanted = true;
    torch::Tensor leaf;
    torch::Tensor sum;
  };

  void draw_round() {
    chains_.clear();
    dies_ = draw_.one_in(6);
    twice_ = !dies_ && draw_.one_in(5);
    fails_ = !dies_ && !twice_ && draw_.one_in(6);
    const std::int64_t count = 1 + draw_.below(3);
    for (std::int64_t i = 0; i < count; ++i) {
      Chain chain;
      chain.elements = draw_.of({512, 1024, 1024, 4096});
      chain.stream = draw_.one_in(3) ? 1 : 0;
      chain.wanted = !draw_.one_in(4);
      chains_.push_back(std::move(chain));
    }
  }

  // The program's own order: what stream `later` is given from now on follows `earlier`.
  void follow(int later, int earlier) {
    at::cuda::CUDAEvent event;
    event.record(c10::cuda::CUDAStream(world_.stream(earlier)));
    event.block(c10::cuda::CUDAStream(world_.stream(later)));
  }

  void scribble(std::int64_t elements) { torch::full({elements}, NAN, torch::device(kGpu)); }
  void read_late(std::int64_t stream) {
    const at::NoGradGuard no_graph;
    for (const torch::Tensor& tensor : late_->tensors[stream]) {
      late_->read.push_back(tensor.sum());
    }
    late_->tensors[stream].clear();
  }

  void forward(Chain& chain) {
    VirtualWorld::set_current(world_.stream(chain.stream));
    torch::Tensor x = torch::linspace(-1, 1 + 0.1 * static_cast<double>(++serial_), chain.elements,
                                      torch::device(kGpu));
    chain.leaf = x.requires_grad_();
    const std::int64_t ops = 2 + draw_.below(4);
    for (std::int64_t i = 0; i < ops; ++i) {
      x = op(x, chain);
      watch(x, chain);
      scribble(chain.elements);
      if (draw_.one_in(3)) scribble(chain.elements);
    }
    chain.sum = x.square().sum();
    x.reset();
    scribble(chain.elements);
  }

  torch::Tensor op(const torch::Tensor& x, const Chain& chain) {
    switch (draw_.below(5)) {
      case 0:
        return x.tanh();
      case 1:
        return x.sigmoid();
      case 2:
        return x.sin() * x;
      case 3:
        return torch::cat({x.narrow(0, 0, chain.elements / 2).cos(),
                           x.narrow(0, chain.elements / 2, chain.elements / 2).atan()});
      default:
        return Keeping::apply(x, reinterpret_cast<std::int64_t>(late_.get()),
                              std::int64_t{chain.stream});
    }
  }

  // Before the node of `x` runs, on its stream.
  void watch(const torch::Tensor& x, const Chain& chain) {
    const bool fails = fails_ && draw_.one_in(4);
    const bool reads = draw_.one_in(3);
    const bool scribbles = !draw_.one_in(4);
    x.register_hook([=, this, elements = chain.elements, stream = chain.stream](torch::Tensor) {
      if (reads) read_late(stream);
      if (scribbles) scribble(elements);
      if (fails) throw std::runtime_error("the program's own");
    });
  }

  Dice draw_;
  VirtualWorld& world_;
  std::vector<Chain> chains_;
  std::shared_ptr<Late> late_ = std::make_shared<Late>();
  Tensors results_;
  bool dies_ = false;
  bool twice_ = false;
  bool fails_ = false;
  int serial_ = 0;
};

}  // namespace ferry::real
