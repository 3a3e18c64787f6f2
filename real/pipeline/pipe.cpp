#include "ferry/pipe.h"

#include <ATen/ops/cat.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "real/autograd/torch_autograd.h"
#include "real/pipeline/layers.h"
#include "real/pipeline/torch_pipe_device.h"
#include "real/pipeline/worker_threads.h"
#include "shared/pipeline/pipeline.h"
#include "shared/pipeline/scheduled_pipeline.h"

namespace ferry {

using real::PipeLayers;
using real::TorchAutograd;
using real::TorchPipeDevice;
using real::WorkerThreads;
using torch::Tensor;
using Tensors = Pipe::Tensors;

namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw std::invalid_argument("ferry::Pipe: " + text);
}

// Splits the tensors by micro-batch. Undefined tensors are undefined in each.
std::vector<Tensors> scatter(const Tensors& tensors, std::int64_t chunks,
                             const torch::Device& device, const char* what) {
  std::int64_t rows = -1;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (tensor.dim() == 0) refuse(std::string("expected ") + what + " with a batch's dimension");
    if (rows >= 0 && tensor.size(0) != rows) {
      refuse(std::string("expected ") + what + " with one batch size, found " +
             std::to_string(rows) + " and " + std::to_string(tensor.size(0)));
    }
    rows = tensor.size(0);
  }
  if (rows < 0) refuse(std::string("expected a tensor as ") + what);
  std::vector<Tensors> microbatches;
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (!tensors[k].defined()) continue;
    const auto parts = tensors[k].to(device).chunk(chunks, 0);
    microbatches.resize(parts.size(), Tensors(tensors.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) microbatches[i][k] = parts[i];
  }
  return microbatches;
}

Tensors gather(const std::vector<Tensors>& microbatches) {
  Tensors result;
  for (std::size_t k = 0; k < microbatches.front().size(); ++k) {
    Tensors parts;
    for (const Tensors& each : microbatches) {
      if (each.size() != microbatches.front().size()) refuse("micro-batches with other outputs");
      if (each[k].defined()) parts.push_back(each[k]);
    }
    result.push_back(parts.empty() ? Tensor() : parts.size() == 1 ? parts.front() : at::cat(parts));
  }
  return result;
}

bool several_on_the_cpu(const std::vector<torch::Device>& devices) {
  return std::ranges::count_if(devices, [](const torch::Device& d) { return d.is_cpu(); }) > 1;
}

}  // namespace

class Pipe::Impl {
 public:
  Impl(const torch::nn::Sequential& layers, const PipeOptions& options)
      : sequential(layers),
        options_(real::completed(options, *layers)),
        layers_(std::make_shared<PipeLayers>(*layers, options_.balance())),
        workers_(options_.devices().size(), several_on_the_cpu(options_.devices())) {
    for (const torch::Device& device : options_.devices()) devices_.emplace_back(device);
    for (std::size_t stage = 0; stage < layers_->stages(); ++stage) {
      devices.push_back(devices_[device_of(stage)].device());
      layers_->move(stage, devices.back());
    }
  }

  Tensors forward(const Tensors& inputs, bool list) {
    if (layers_->stages() == 0) return inputs;
    std::vector<PipelineStage<TorchAutograd>> stages;
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      stages.push_back({device_of(s), PipeLayers::stage(layers_, s, list)});
    }
    Pipeline pipeline(devices_, TorchAutograd(), workers_, std::move(stages), layers_->layout(),
                      core_options());
    return gather(pipeline.forward(scatter(inputs, options_.chunks(), devices.front(), "inputs")));
  }

  Tensor step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss, bool list) {
    if (layers_->stages() == 0) refuse("a step needs layers");
    if (!torch::GradMode::is_enabled()) refuse("a step needs grad mode");
    auto microbatches = scatter(inputs, options_.chunks(), devices.front(), "inputs");
    const auto aims = scatter(targets, options_.chunks(), devices.back(), "targets");
    if (aims.size() != microbatches.size()) {
      refuse("expected targets for the inputs: these are " + std::to_string(microbatches.size()) +
             " micro-batches, those " + std::to_string(aims.size()));
    }
    std::vector<PipeLayers::Function> stages;
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      stages.push_back(PipeLayers::stage(layers_, s, list));
    }
    ScheduledPipeline pipeline(devices_, TorchAutograd(), workers_, std::move(stages),
                               layers_->layout(), options_.schedule(), core_options());
    const auto count = static_cast<std::int64_t>(aims.size());
    const Tensors losses =
        pipeline.step(std::move(microbatches), [&](const Tensors& outputs, std::size_t i) {
          Tensor value = loss(outputs, aims[i]);
          if (!value.defined() || value.numel() != 1) refuse("expected a loss that is a scalar");
          return value / count;
        });
    Tensor sum = losses.front();
    for (std::size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i];
    return sum;
  }

  const torch::nn::Sequential sequential;
  std::vector<torch::Device> devices;  // indexed by stage

 private:
  std::size_t device_of(std::size_t stage) const { return stage % options_.devices().size(); }
  CorePipelineOptions core_options() const {
    CorePipelineOptions core;
    core.checkpoint = sequential->is_training() ? options_.checkpoint() : CheckpointMode::kNever;
    core.preserve_rng_state = options_.preserve_rng_state();
    return core;
  }

  const PipeOptions options_;
  const std::shared_ptr<PipeLayers> layers_;
  std::vector<TorchPipeDevice> devices_;
  const WorkerThreads workers_;
};

Pipe::Pipe(const torch::nn::Sequential& layers, const PipeOptions& options)
    : impl_(std::make_shared<Impl>(layers, options)) {}

Tensor Pipe::forward(const Tensor& input) {
  Tensors outputs = impl_->forward({input}, /*list=*/false);
  if (outputs.size() != 1) {
    refuse("the last layer gives " + std::to_string(outputs.size()) +
           " tensors: call forward with a vector");
  }
  return std::move(outputs.front());
}
Tensors Pipe::forward(const Tensors& inputs) { return impl_->forward(inputs, /*list=*/true); }

Tensor Pipe::step(const Tensor& input, const Tensor& target, const Loss& loss) {
  const auto of_one = [&loss](const Tensors& outputs, const Tensors& targets) {
    if (outputs.size() != 1) {
      refuse("the last layer gives " + std::to_string(outputs.size()) +
             " tensors: call step with vectors");
    }
    return loss(outputs.front(), targets.front());
  };
  return impl_->step({input}, {target}, of_one, /*list=*/false);
}
Tensor Pipe::step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss) {
  return impl_->step(inputs, targets, loss, /*list=*/true);
}

torch::nn::Sequential Pipe::layers() const { return impl_->sequential; }
std::vector<Tensor> Pipe::parameters() const { return impl_->sequential->parameters(); }
const std::vector<torch::Device>& Pipe::devices() const { return impl_->devices; }

}  // namespace ferry
