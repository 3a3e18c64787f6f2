// Pipelines of micro-batches for LibTorch: the layers of a Sequential in stages, a device and a
// thread each.
//
//   ferry::Pipe pipe(layers, ferry::PipeOptions().balance({2, 3}).microbatches(4));
//
//   auto loss = pipe.step(input, target, [](const auto& y, const auto& t) {     // a schedule's
//     return torch::mse_loss(y, t);                                             // backward
//   });
//   optimizer.step();
//
//   auto y = pipe.forward(input);                 // or GPipe, and a backward of your own
//   torch::mse_loss(y, target).backward();
//
//   torch::save(pipe, "pipe.pt");                 // it is a module
//
// A batch is cut along dimension 0 into `microbatches` micro-batches of equal size, as
// Tensor::chunk does (the last may be smaller, and there may be fewer). While one stage works on a
// micro-batch the others work on others. On the CPU several stages are several threads; nothing is
// copied. On accelerators, what crosses travels on streams of its own.
//
// Layers take and return a tensor, or several: a std::vector of tensors, a pair, a tuple of up to
// eight, or what an LSTM returns (ferry/pipe_tuple.h). They run in the stage's thread, with the
// caller's grad mode, autocast, saved-tensor hooks (an OffloadGuard's, say) and checkpoint guards.
// Tensors go from layer to layer; what else one is to have of another is a skip tensor
// (ferry/skip.h), so that it crosses devices as well. A parameter belongs to one stage: two stages
// that share a weight stash it in the one and pop it in the other.
//
// Checkpointing. A micro-batch's stages keep their inputs alone and run again in backward, while
// the gradient is on its way; without grad mode, and in eval mode, none do. Dropout: a device's
// stages draw from the device's generator; where several devices are the CPU, each has a generator
// of its own, which a step seeds by the caller's. So torch::manual_seed says what they draw, and a
// recompute draws what forward drew; but not what one thread would have drawn.
//
// step() and forward(). step() runs backward in the stages' threads by a schedule, so that few
// micro-batches are alive at once; what enters a stage is a leaf there, which the stage must not
// write in place (nor may one that is to run again, nor any where a skip tensor or another value is
// a view of it: ValueError). forward() takes GPipe's order and gives outputs with a graph, from
// which any backward that accumulates in leaves may go, several times with retain_graph, but not
// with create_graph; where stages are checkpointed, neither autograd::grad nor `inputs`. On the CPU
// such a backward runs on the calling thread alone.
//
// Equality. Micro-batches give the bits that a loop over them gives: their losses each divided by
// their number, and backward called one by one, in their order (forward()'s backward takes them
// from the last to the first). Running statistics of norms count each micro-batch once.
//
// Errors: ValueError for options and layers that do not fit, SkipError for skip tensors
// that do not. What a stage throws is thrown here, the first failed stage's, when the other threads
// are done; the next step works.
//
// Models torchgpipe/gpipe.py, and torch/distributed/pipelining of PyTorch 2.11 for the schedules.
#pragma once

#include <torch/arg.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <utility>
#include <vector>

#include "ferry/offload.h"
#include "ferry/pipe_tuple.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/stage.h"
#include "shared/pipeline/stage_policy.h"

namespace ferry {

struct PipeOptions {
  PipeOptions() = default;

  // The number of layers of each stage. balance_by_time and balance_by_size propose some.
  TORCH_ARG(std::vector<std::int64_t>, balance);
  // The devices of the stages: stage s is on device s % n, where n of them are used; empty: all on
  // the CPU, a thread each. An accelerator may be listed twice: two stages then share it.
  TORCH_ARG(std::vector<torch::Device>, devices);
  // The number of micro-batches.
  TORCH_ARG(std::int64_t, microbatches) = 1;
  // The micro-batches that run again in backward.
  TORCH_ARG(CheckpointMode, checkpoint) = CheckpointMode::kExceptLast;
  // What each stage keeps for backward. Empty: `checkpoint` is for every stage, and nothing moves.
  // Else `checkpoint` is for the stages that are to run again. In forward() the inputs of such a
  // stage do not move.
  TORCH_ARG(std::vector<StagePolicy>, stage_policies);
  // The options of the stages that offload; each device has an Offload of its own.
  TORCH_ARG(OffloadOptions, offload);
  // The schedule of step(). Interleaved: each device has stages_per_device stages, and the number
  // of micro-batches must be a multiple of the devices.
  TORCH_ARG(ScheduleKind, schedule) = ScheduleKind::kOneForwardOneBackward;
  TORCH_ARG(std::int64_t, stages_per_device) = 1;
  // Recomputes see the random numbers of forward.
  TORCH_ARG(bool, preserve_rng_state) = true;
};

// The module. Its children are the layers, by their names in the Sequential: parameters, buffers,
// and a state that torch::save writes, are called as there, and load there.
class PipeImpl : public torch::nn::Module {
 public:
  using Tensors = std::vector<torch::Tensor>;
  using Loss =
      std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;
  using LossOfMany = std::function<torch::Tensor(const Tensors& outputs, const Tensors& targets)>;

  // Moves each layer to its stage's device; the layers must stay there from then on. Starts the
  // threads.
  PipeImpl(const torch::nn::Sequential& layers, const PipeOptions& options);
  ~PipeImpl() override;

  // The batch's output, on the last stage's device. Several tensors are cut in lock-step; the first
  // layer takes a vector of them, or a tuple where that is what was given.
  torch::Tensor forward(const torch::Tensor& input);
  Tensors forward(const Tensors& inputs);
  template <TensorTuple Inputs>
  Tensors forward(Inputs inputs) {
    return run_forward(pipe_impl::to_list(std::move(inputs)), pipe_impl::kForm<Inputs>);
  }

  // Runs forward and backward. `loss` is called in the last stage's thread for each micro-batch
  // (and again if that stage runs again), and returns a scalar. Accumulates the parameters'
  // gradients, and returns the mean of the losses, without its graph. Throws ValueError
  // if grad mode is off.
  torch::Tensor step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss);
  torch::Tensor step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss);
  template <TensorTuple Inputs>
  torch::Tensor step(Inputs inputs, const Tensors& targets, const LossOfMany& loss) {
    return run_step(pipe_impl::to_list(std::move(inputs)), targets, loss, pipe_impl::kForm<Inputs>);
  }

  // As they were given, but for devices, which are those in use.
  const PipeOptions& options() const;
  torch::nn::Sequential layers() const;
  std::size_t stages() const { return devices().size(); }
  // Indexed by stage.
  const std::vector<torch::Device>& devices() const;
  // By the device's number, of each that has stages which offload: for statistics and decisions.
  std::map<std::size_t, Offload> offloads() const;

  // Of the layers() as well.
  void train(bool on = true) override;
  // To another dtype. Throws ValueError for another device: a stage stays on its own.
  void to(torch::Dtype dtype, bool non_blocking = false) override;
  void to(torch::Device device, bool non_blocking = false) override;
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking = false) override;
  void pretty_print(std::ostream& stream) const override;

 private:
  Tensors run_forward(const Tensors& inputs, const pipe_impl::Form& form);
  torch::Tensor run_step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss,
                         const pipe_impl::Form& form);

  class Runner;
  std::unique_ptr<Runner> runner_;
};

// A holder, as all of LibTorch's modules have one: a copy is the same pipe. Calls from several
// threads take turns.
class Pipe : public torch::nn::ModuleHolder<PipeImpl> {
 public:
  using Tensors = PipeImpl::Tensors;
  using Loss = PipeImpl::Loss;
  using LossOfMany = PipeImpl::LossOfMany;

  using torch::nn::ModuleHolder<PipeImpl>::ModuleHolder;  // of layers and options

  // The module's own, which `->` calls too.
  torch::Tensor forward(const torch::Tensor& input) { return get()->forward(input); }
  Tensors forward(const Tensors& inputs) { return get()->forward(inputs); }
  template <TensorTuple Inputs>
  Tensors forward(Inputs inputs) {
    return get()->forward(std::move(inputs));
  }
  torch::Tensor step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss) {
    return get()->step(input, target, loss);
  }
  torch::Tensor step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss) {
    return get()->step(inputs, targets, loss);
  }
  template <TensorTuple Inputs>
  torch::Tensor step(Inputs inputs, const Tensors& targets, const LossOfMany& loss) {
    return get()->step(std::move(inputs), targets, loss);
  }
  torch::nn::Sequential layers() const { return get()->layers(); }
  std::vector<torch::Tensor> parameters() const { return get()->parameters(); }
  const std::vector<torch::Device>& devices() const { return get()->devices(); }
  std::map<std::size_t, Offload> offloads() const { return get()->offloads(); }
};

// The number of layers of each of `partitions` stages, so that the slowest costs least
// (shared/pipeline/balance.h). Each layer is measured where it is, on the previous layer's output
// for `sample`: the time of forward and backward, measured again and again until `timeout` is over,
// the fastest counts; or the bytes of its parameters, times parameter_scale (gradients and an
// optimizer's state), and of the tensors that it saves for backward. Layers are measured in train
// mode; afterwards their modes, gradients and buffers are as before. Throws ValueError
// where there are fewer layers than partitions.
std::vector<std::int64_t> balance_by_time(
    const torch::nn::Sequential& layers, std::int64_t partitions, const torch::Tensor& sample,
    std::chrono::duration<double> timeout = std::chrono::seconds(1));
std::vector<std::int64_t> balance_by_size(const torch::nn::Sequential& layers,
                                          std::int64_t partitions, const torch::Tensor& sample,
                                          double parameter_scale = 2);

}  // namespace ferry
