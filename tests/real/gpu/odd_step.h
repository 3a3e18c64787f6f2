// A program that has what a model's step seldom has, so that each step of the core is needed: two
// streams that compute, saved tensors that outlive their nodes, a graph that nobody goes back
// through, and a backward that needs half of what was saved.
#pragma once

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/torch.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/real/gpu/trained.h"

namespace ferry::real {

// Keeps what it saved when its backward is over.
struct Keeping : torch::autograd::Function<Keeping> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::vector<at::Tensor>* kept) {
    context->save_for_backward({x});
    context->saved_data["kept"] = reinterpret_cast<std::int64_t>(kept);
    return x * x;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::Tensor x = context->get_saved_variables().front();
    auto* const kept =
        reinterpret_cast<std::vector<at::Tensor>*>(context->saved_data["kept"].toInt());
    kept->push_back(x);
    return {gradients.front() * x * 2, at::Tensor()};
  }
};

class OddStep {
 public:
  // A stream log sees none of a program's own events: what it is to judge has one stream.
  explicit OddStep(bool two_streams = true)
      : other_(two_streams ? c10::cuda::getStreamFromPool(/*isHighPriority=*/false)
                           : c10::cuda::getCurrentCUDAStream()) {}

  // Gradients, what was kept, and blocks that were taken again meanwhile: a function of nothing.
  Tensors operator()() {
    Tensors results;
    branches(results);
    tail(results);
    beside_a_small_one(results);
    side_by_side(results);
    return results;
  }

 private:
  static constexpr std::int64_t kElements = 1 << 18;  // 1 MiB
  static constexpr int kLayers = 4;

  static at::Tensor leaf() {
    return torch::arange(kElements, at::device(at::kCUDA).dtype(at::kFloat)).sin().requires_grad_();
  }
  // Blocks that were free, with values of their own.
  static void take_again(Tensors& results) {
    for (int i = 0; i < 6; ++i) results.push_back(torch::full({kElements}, 7.0 + i, at::kCUDA));
  }

  // A backward has no use for what was saved first; nodes' saved tensors outlive them; and nobody
  // goes back through what is saved last.
  void branches(Tensors& results) {
    const at::Tensor from = leaf();
    at::Tensor x = from;
    at::Tensor unused = from * 2;  // the oldest: what a backward comes to last, and has no use for
    for (int layer = 0; layer < kLayers; ++layer) unused = unused.tanh();
    std::vector<at::Tensor> kept;
    for (int layer = 0; layer < kLayers; ++layer) x = Keeping::apply(x.sin(), &kept);
    const at::Tensor half = x.sum();
    const at::Tensor whole = there(x).sum();
    results.push_back(torch::autograd::grad({half}, {from}, {}, /*retain_graph=*/true).front());
    take_again(results);
    for (const at::Tensor& tensor : kept) results.push_back(tensor * 3);
    kept.clear();
    results.push_back(torch::autograd::grad({whole}, {from}).front());
    unused.reset();
    at::Tensor abandoned = from;
    for (int layer = 0; layer < kLayers; ++layer) abandoned = abandoned.tanh();
    abandoned.reset();
    kept.clear();
    take_again(results);
  }

  // What one stream made is saved on the other, which knows nothing of its first one's waits.
  void tail(Tensors& results) {
    const at::Tensor from = leaf();
    at::Tensor x = from.sin();
    const c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream();
    hand_over(x, here, other_);
    {
      const c10::cuda::CUDAStreamGuard guard(other_);
      at::Tensor y = x.cos();
      x.reset();
      y = y.cos().sum();
      results.push_back(torch::autograd::grad({y}, {from}).front());
    }
    hand_over(results.back(), other_, here);
  }

  // What is too small to move is saved, which takes the place of what moves in the window: nothing
  // is copied between that and the next use of the block.
  static void beside_a_small_one(Tensors& results) {
    const at::Tensor from = leaf();
    const at::Tensor few = torch::ones({8}, at::kCUDA).requires_grad_();
    const at::Tensor y = from.sin().sin();  // the graph alone has the first one's result
    const at::Tensor z = few.sin();
    take_again(results);
    for (at::Tensor& gradient : torch::autograd::grad({y.sum() + z.sum()}, {from, few})) {
      results.push_back(std::move(gradient));
    }
  }

  // Two chains, each on a stream of its own, in turns.
  void side_by_side(Tensors& results) {
    const at::Tensor from[2] = {leaf(), leaf() * 1.5};
    const c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream();
    hand_over(from[1], here, other_);
    at::Tensor left = from[0];
    at::Tensor right = from[1];
    for (int layer = 0; layer < kLayers; ++layer) {
      left = left.sin();
      const c10::cuda::CUDAStreamGuard guard(other_);
      right = right.sin();
    }
    left = left.sum();
    {
      const c10::cuda::CUDAStreamGuard guard(other_);
      right = right.sum();
    }
    for (at::Tensor& gradient : torch::autograd::grad({left, right}, {from[0], from[1]})) {
      results.push_back(std::move(gradient));
    }
    hand_over(results.back(), other_, here);
  }

  // cos twice, on the other stream, and back.
  at::Tensor there(const at::Tensor& x) {
    const c10::cuda::CUDAStream here = c10::cuda::getCurrentCUDAStream();
    hand_over(x, here, other_);
    at::Tensor y;
    {
      const c10::cuda::CUDAStreamGuard guard(other_);
      y = x.cos().cos();
    }
    hand_over(y, other_, here);
    return y;
  }
  static void hand_over(const at::Tensor& x, const c10::cuda::CUDAStream& from,
                        const c10::cuda::CUDAStream& to) {
    if (from == to) return;
    order(from, to);
    x.record_stream(to.unwrap());
  }
  static void order(const c10::cuda::CUDAStream& before, const c10::cuda::CUDAStream& after) {
    c10::Event event(c10::DeviceType::CUDA);
    event.record(before.unwrap());
    event.block(after.unwrap());
  }
  static void abandoned(const at::Tensor& leaf) {
    at::Tensor x = leaf;
    for (int layer = 0; layer < kLayers; ++layer) x = x.tanh();
  }

  const c10::cuda::CUDAStream other_;
};

}  // namespace ferry::real
