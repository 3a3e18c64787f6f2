// Pipelines of micro-batches for LibTorch. The layers of a Sequential are split into stages; each
// stage has a device and a thread.
//
//   ferry::Pipe pipe(layers, ferry::PipeOptions().balance({2, 3}).microbatches(4));
//
//   auto loss = pipe.step(input, target, [](const auto& y, const auto& t) {   // runs backward too,
//     return torch::mse_loss(y, t);                                           // by a schedule
//   });
//   optimizer.step();
//
//   auto y = pipe.forward(input);                 // or GPipe, with a backward of your own
//   torch::mse_loss(y, target).backward();
//
//   torch::save(pipe, "pipe.pt");                 // it is a module
//
// A batch is cut along dimension 0 into micro-batches of equal size, as Tensor::chunk does: the
// last micro-batch may be smaller, and there may be fewer than `microbatches`. While a stage works
// on one micro-batch, other stages work on others. On the CPU the stages are threads and nothing is
// copied. On accelerators, tensors between stages are copied on their own streams.
//
// Layers take and return a tensor or several: a std::vector of tensors, a pair, a tuple of up to
// eight, or what an LSTM returns (ferry/pipe_tuple.h). They run in the thread of their stage, with
// the caller's grad mode, autocast, saved-tensor hooks (such as an OffloadGuard) and checkpoint
// guards. Tensors go from one layer to the next. Anything else that a layer needs from an earlier
// one must be a skip tensor (ferry/skip.h), which may cross devices. A parameter belongs to one
// stage: if two stages share a weight, one stashes it and the other pops it.
//
// Checkpointing. A checkpointed stage keeps only the inputs of a micro-batch. Backward runs the
// stage again while the gradient is on its way. Without grad mode, and in eval mode, nothing is
// recomputed. Dropout: the stages of a device use the generator of the device. If several devices
// are the CPU (as by default), each device has its own generator, seeded from the caller's. So
// torch::manual_seed determines all random numbers, and a recompute repeats those of forward, but
// the numbers differ from those of a loop on one thread.
//
// step() and forward(). step() runs backward in the threads of the stages, in the order of a
// schedule, so that few micro-batches are alive at once. In step() the inputs of a stage are
// leaves, and the stage must not write them in place. forward() uses the order of GPipe and returns
// outputs with a graph. Any backward that accumulates in leaves may start from the outputs, several
// times with retain_graph, but not with create_graph. If stages are checkpointed, neither
// autograd::grad nor the argument `inputs` of backward works. On the CPU the backward of forward()
// runs on the calling thread only. Both step() and forward() throw ValueError if a stage writes in
// place an input that it will be recomputed from, or an input that shares its bytes with a skip
// tensor or another input. (What a stage pops is an input of the stage.)
//
// Equality. With the same random numbers, the results have the same bits as a loop over the
// micro-batches in which each loss is divided by the number of micro-batches and backward is called
// for one micro-batch after the other, in order. (The backward of forward() takes the micro-batches
// from the last to the first.) Running statistics of norms count each micro-batch once.
//
// Errors: ValueError if options and layers do not fit, SkipError if skip tensors do not. If stages
// throw, the call waits for the other threads and throws the error of the first failed stage. The
// next step works.
//
// Sources: torchgpipe/gpipe.py, and for the schedules torch/distributed/pipelining of PyTorch 2.11.
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

  // The number of layers in each stage. balance_by_time and balance_by_size propose values.
  TORCH_ARG(std::vector<std::int64_t>, balance);
  // The devices: with n of them, stage s is on device s % n. Empty: all on the CPU, with a thread
  // each. An accelerator may be listed twice; two stages then share it.
  TORCH_ARG(std::vector<torch::Device>, devices);
  // The number of micro-batches.
  TORCH_ARG(std::int64_t, microbatches) = 1;
  // The micro-batches that backward recomputes.
  TORCH_ARG(CheckpointMode, checkpoint) = CheckpointMode::kExceptLast;
  // The policy of each stage: what it keeps for backward. If empty, `checkpoint` applies to every
  // stage and nothing is offloaded. Otherwise `checkpoint` applies to the stages that are
  // recomputed. forward() does not offload the inputs of such stages.
  TORCH_ARG(std::vector<StagePolicy>, stage_policies);
  // Options for stages that offload. Each device has an Offload of its own.
  TORCH_ARG(OffloadOptions, offload);
  // The schedule of step(). With kInterleaved each device has stages_per_device stages, and the
  // number of micro-batches must be a multiple of the number of devices.
  TORCH_ARG(ScheduleKind, schedule) = ScheduleKind::kOneForwardOneBackward;
  TORCH_ARG(std::int64_t, stages_per_device) = 1;
  // A recompute gets the random numbers of forward.
  TORCH_ARG(bool, preserve_rng_state) = true;
};

// The pipeline as a module. Its children are the layers, with their names in the Sequential. So
// parameters and buffers have the same names as there, and a state that torch::save wrote for one
// loads into the other.
class PipeImpl : public torch::nn::Module {
 public:
  using Tensors = std::vector<torch::Tensor>;
  using Loss =
      std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;
  using LossOfMany = std::function<torch::Tensor(const Tensors& outputs, const Tensors& targets)>;

  // Moves each layer to the device of its stage, where it must stay, and starts the threads.
  PipeImpl(const torch::nn::Sequential& layers, const PipeOptions& options);
  ~PipeImpl() override;

  // Returns the output for the batch, on the device of the last stage. Several inputs are cut at
  // the same places. The first layer gets a vector of them, or a tuple if one was passed.
  torch::Tensor forward(const torch::Tensor& input);
  Tensors forward(const Tensors& inputs);
  template <TensorTuple Inputs>
  Tensors forward(Inputs inputs) {
    return run_forward(pipe_impl::to_list(std::move(inputs)), pipe_impl::kForm<Inputs>);
  }

  // Runs forward and backward. `loss` is called in the thread of the last stage for each
  // micro-batch, and again if that stage is recomputed; it returns a scalar. Gradients accumulate
  // in the parameters. Returns the mean of the losses, without graph. Throws ValueError if grad
  // mode is off.
  torch::Tensor step(const torch::Tensor& input, const torch::Tensor& target, const Loss& loss);
  torch::Tensor step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss);
  template <TensorTuple Inputs>
  torch::Tensor step(Inputs inputs, const Tensors& targets, const LossOfMany& loss) {
    return run_step(pipe_impl::to_list(std::move(inputs)), targets, loss, pipe_impl::kForm<Inputs>);
  }

  // Returns the given options, with the devices in use.
  const PipeOptions& options() const;
  torch::nn::Sequential layers() const;
  std::size_t stages() const { return devices().size(); }
  // Returns the device of each stage.
  const std::vector<torch::Device>& devices() const;
  // Returns the Offload of each device that has one, by the number of the device. Use them for
  // statistics and decisions.
  std::map<std::size_t, Offload> offloads() const;

  // Also sets the mode of layers().
  void train(bool on = true) override;
  // Converts to another dtype. Throws ValueError for another device: a stage stays on its device.
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

// A holder like those of all LibTorch modules: a copy is the same pipe. Calls from several threads
// run one after the other.
class Pipe : public torch::nn::ModuleHolder<PipeImpl> {
 public:
  using Tensors = PipeImpl::Tensors;
  using Loss = PipeImpl::Loss;
  using LossOfMany = PipeImpl::LossOfMany;

  using torch::nn::ModuleHolder<PipeImpl>::ModuleHolder;  // takes layers and options

  // These call the module. `->` works too.
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

// Returns the number of layers for each of `partitions` stages, so that the most expensive stage
// costs as little as possible (shared/pipeline/balance.h). Each layer is measured on its own
// device, with the output of the previous layer for `sample`. balance_by_time measures forward and
// backward repeatedly until `timeout`, and takes the fastest time. balance_by_size adds the bytes
// of the parameters, times parameter_scale (for gradients and the state of an optimizer), and of
// the tensors that the layer saves for backward. Layers are measured in train mode; modes,
// gradients and buffers are restored afterwards. Throws ValueError if there are fewer layers than
// partitions.
std::vector<std::int64_t> balance_by_time(
    const torch::nn::Sequential& layers, std::int64_t partitions, const torch::Tensor& sample,
    std::chrono::duration<double> timeout = std::chrono::seconds(1));
std::vector<std::int64_t> balance_by_size(const torch::nn::Sequential& layers,
                                          std::int64_t partitions, const torch::Tensor& sample,
                                          double parameter_scale = 2);

}  // namespace ferry
