// What the tests of pipelines share: layers of small integers, so that sums are exact in any order.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/pipe.h"
#include "ferry/skip.h"

namespace ferry {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// y = x * w, with w of small integers; calls `seen` first.
struct ScaleImpl : torch::nn::Module {
  explicit ScaleImpl(std::int64_t number, std::function<void()> seen_here = {})
      : seen(std::move(seen_here)) {
    w = register_parameter("w", torch::arange(1, 4, torch::kFloat64) * (number % 2 == 0 ? 1 : -1) +
                                    static_cast<double>(number % 3));
  }
  Tensor forward(const Tensor& x) {
    if (seen) seen();
    return x * w;
  }
  Tensor w;
  std::function<void()> seen;
};
TORCH_MODULE(Scale);

// A layer made of a function, with skip tensors.
struct LayerImpl : torch::nn::Module, SkipLayer {
  using Run = std::function<Tensor(LayerImpl&, Tensor)>;
  LayerImpl(std::vector<std::string> stashes, std::vector<std::string> pops, Run function)
      : SkipLayer(std::move(stashes), std::move(pops)), run(std::move(function)) {
    w = register_parameter("w", torch::full({}, 2.0, torch::kFloat64));
  }
  Tensor forward(Tensor x) { return run(*this, std::move(x)); }
  void put(const std::string& name, Tensor tensor) const { stash(name, std::move(tensor)); }
  Tensor take(const std::string& name) const { return pop(name); }
  Tensor w;
  Run run;
};
TORCH_MODULE(Layer);

inline Layer layer(std::vector<std::string> stashes, std::vector<std::string> pops,
                   LayerImpl::Run run) {
  return Layer(std::move(stashes), std::move(pops), std::move(run));
}

inline Tensor batch(std::int64_t rows) {
  return torch::arange(rows * 3, torch::kFloat64).remainder(5).view({rows, 3}) - 2;
}
inline Tensor sum_of(const Tensor& y, const Tensor& target) { return (y * target).sum(); }

// Bits, not values: and undefined is not zero.
inline ::testing::AssertionResult same(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].defined() != b[i].defined()) {
      return ::testing::AssertionFailure() << "number " << i << " is undefined in one";
    }
    if (a[i].defined() && !a[i].equal(b[i])) {
      return ::testing::AssertionFailure() << "number " << i << ": " << a[i] << "\nis not\n"
                                           << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

inline Tensors gradients(torch::nn::Sequential layers) {
  Tensors result;
  for (const Tensor& parameter : layers->parameters()) {
    result.push_back(parameter.grad().defined() ? parameter.grad().clone() : Tensor());
  }
  return result;
}

// One micro-batch after the other, without a pipeline; gives the loss.
inline Tensor plain_step(torch::nn::Sequential layers, const Tensor& x, const Tensor& target,
                         std::int64_t microbatches, const Pipe::Loss& loss_function = sum_of) {
  layers->zero_grad();
  const auto inputs = x.chunk(microbatches);
  const auto targets = target.chunk(microbatches);
  const auto count = static_cast<std::int64_t>(inputs.size());
  Tensor sum;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor loss = loss_function(layers->forward(inputs[i]), targets[i]) / count;
    loss.backward();
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  return sum;
}

inline constexpr CheckpointMode kModes[] = {CheckpointMode::kAlways, CheckpointMode::kExceptLast,
                                            CheckpointMode::kNever};
inline constexpr ScheduleKind kSchedules[] = {
    ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward, ScheduleKind::kInterleaved};

// Calls with options for `balance` under each schedule (an interleaved one has two stages on a
// device) and mode.
inline void for_all_options(const std::vector<std::int64_t>& balance, std::int64_t microbatches,
                            const std::function<void(const PipeOptions&)>& call) {
  for (const ScheduleKind schedule : kSchedules) {
    for (const CheckpointMode mode : kModes) {
      SCOPED_TRACE(std::string(name(schedule)) + ", checkpoint " + std::string(name(mode)));
      const bool interleaved = schedule == ScheduleKind::kInterleaved;
      call(PipeOptions()
               .balance(balance)
               .microbatches(microbatches)
               .schedule(schedule)
               .checkpoint(mode)
               .stages_per_device(interleaved ? 2 : 1));
    }
  }
}

}  // namespace ferry
