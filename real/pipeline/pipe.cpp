#include "ferry/pipe.h"

#include <ATen/ops/cat.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "real/autograd/torch_autograd.h"
#include "real/pipeline/layers.h"
#include "real/pipeline/stage_mover.h"
#include "real/pipeline/torch_pipe_device.h"
#include "real/pipeline/worker_threads.h"
#include "real/tensors/torch_error.h"
#include "shared/pipeline/pipeline.h"
#include "shared/pipeline/scheduled_pipeline.h"

namespace ferry {

using pipe_impl::Form;
using pipe_impl::kForm;
using real::PipeLayers;
using real::StageMover;
using real::TorchAutograd;
using real::TorchPipeDevice;
using real::WorkerThreads;
using torch::Tensor;
using Tensors = PipeImpl::Tensors;

namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw real::torch_error(ValueError("ferry::Pipe: " + text));
}

// The parts of a batch share its version counter, so a write to one part would count as a write to
// all, in whichever stage they are. So parts of a step that need no gradient get their own
// counters; if one was written, the batch's counter is bumped after the step. The parts of
// forward() do not: its graph lives on, and must notice later writes to the batch.
class OwnVersions {
 public:
  OwnVersions() = default;
  OwnVersions(const OwnVersions&) = delete;
  OwnVersions& operator=(const OwnVersions&) = delete;
  ~OwnVersions() {
    for (const Part& part : parts_) {
      if (part.version.current_version() > 0) part.batch.unsafeGetTensorImpl()->bump_version();
    }
  }
  Tensor of(const Tensor& batch, const Tensor& part) {
    if (part.requires_grad() || part.is_inference()) return part;
    Tensor own = part.variable_data();
    parts_.push_back({batch, own.unsafeGetTensorImpl()->version_counter()});
    return own;
  }

 private:
  struct Part {
    Tensor batch;
    c10::VariableVersion version;
  };
  std::vector<Part> parts_;
};

// Splits the tensors by micro-batch. An undefined tensor is undefined in each of them.
std::vector<Tensors> scatter(const Tensors& tensors, std::int64_t count,
                             const torch::Device& device, const char* what,
                             OwnVersions* versions = nullptr) {
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
    const auto parts = tensors[k].to(device).chunk(count, 0);
    microbatches.resize(parts.size(), Tensors(tensors.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      microbatches[i][k] = versions ? versions->of(tensors[k], parts[i]) : parts[i];
    }
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

class PipeImpl::Runner {
 public:
  Runner(const torch::nn::Sequential& layers, const PipeOptions& given)
      : sequential(layers),
        options(real::completed(given, *layers)),
        layers_(std::make_shared<PipeLayers>(*layers, options.balance())),
        workers_(options.devices().size(), several_on_the_cpu(options.devices())) {
    for (const torch::Device& device : options.devices()) devices_.emplace_back(device);
    for (std::size_t stage = 0; stage < layers_->stages(); ++stage) {
      devices.push_back(devices_[device_of(stage)].device());
      layers_->move(stage, devices.back());
    }
    make_movers();
  }

  Tensors forward(const Tensors& inputs, const Form& form) {
    if (layers_->stages() == 0) return inputs;
    std::vector<PipelineStage<TorchAutograd>> stages;
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      stages.push_back({device_of(s), stage(s, form)});
    }
    Pipeline pipeline(devices_, TorchAutograd(), workers_, std::move(stages), layers_->layout(),
                      core_options());
    return gather(
        pipeline.forward(scatter(inputs, options.microbatches(), devices.front(), "inputs")));
  }

  Tensor step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss,
              const Form& form) {
    if (layers_->stages() == 0) refuse("a step needs layers");
    if (!torch::GradMode::is_enabled()) refuse("a step needs grad mode");
    OwnVersions versions;
    auto microbatches =
        scatter(inputs, options.microbatches(), devices.front(), "inputs", &versions);
    const auto aims =
        scatter(targets, options.microbatches(), devices.back(), "targets", &versions);
    if (aims.size() != microbatches.size()) {
      refuse("expected targets for the inputs: these are " + std::to_string(microbatches.size()) +
             " micro-batches, those " + std::to_string(aims.size()));
    }
    std::vector<PipeLayers::Function> stages;
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      stages.push_back(stage(s, form));
    }
    ScheduledPipeline pipeline(devices_, TorchAutograd(), workers_, std::move(stages),
                               layers_->layout(), options.schedule(), core_options());
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      if (policy(s) == StagePolicy::kCheckpointOffload) {
        pipeline.save_inputs(s, movers_[device_of(s)]->hooks());
      }
    }
    // The loss offloads too if the last stage does.
    const std::size_t last = layers_->stages() - 1;
    std::shared_ptr<Hooks<Tensor>> hooks;
    if (policy(last) == StagePolicy::kOffload) hooks = movers_[device_of(last)]->hooks();
    const auto count = static_cast<std::int64_t>(aims.size());
    const Tensors losses =
        pipeline.step(std::move(microbatches), [&](const Tensors& outputs, std::size_t i) {
          std::optional<HooksGuard<TorchAutograd>> moved;
          if (hooks) moved.emplace(TorchAutograd(), hooks);
          Tensor value = loss(outputs, aims[i]);
          if (!value.defined() || value.numel() != 1) refuse("expected a loss that is a scalar");
          return value / count;
        });
    Tensor sum = losses.front();
    for (std::size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i];
    return sum;
  }

  std::map<std::size_t, Offload> offloads() const {
    std::map<std::size_t, Offload> all;
    for (std::size_t device = 0; device < movers_.size(); ++device) {
      if (movers_[device]) all.emplace(device, movers_[device]->offload());
    }
    return all;
  }

  const torch::nn::Sequential sequential;
  const PipeOptions options;
  std::vector<torch::Device> devices;  // by stage

 private:
  std::size_t device_of(std::size_t stage) const { return stage % options.devices().size(); }
  CorePipelineOptions core_options() const {
    CorePipelineOptions core;
    core.checkpoint = sequential->is_training() ? options.checkpoint() : CheckpointMode::kNever;
    core.preserve_rng_state = options.preserve_rng_state();
    for (const StagePolicy policy : options.stage_policies()) {
      core.checkpointed_stages.push_back(runs_again(policy));
    }
    return core;
  }
  StagePolicy policy(std::size_t stage) const {
    const auto& policies = options.stage_policies();
    return policies.empty() ? StagePolicy::kKeep : policies[stage];
  }
  void make_movers() {
    movers_.resize(devices_.size());
    for (std::size_t s = 0; s < layers_->stages(); ++s) {
      auto& mover = movers_[device_of(s)];
      if (!ferry::offloads(policy(s)) || mover) continue;
      OffloadOptions offload = options.offload();
      mover = std::make_shared<StageMover>(offload.device(devices[s]), *sequential);
    }
  }
  PipeLayers::Function stage(std::size_t number, const Form& form) const {
    auto function = PipeLayers::stage(layers_, number, form);
    const auto& mover = movers_[device_of(number)];
    return mover ? mover->stage(std::move(function), policy(number)) : function;
  }

  const std::shared_ptr<PipeLayers> layers_;
  std::vector<TorchPipeDevice> devices_;
  std::vector<std::shared_ptr<StageMover>> movers_;  // by device; null: it offloads nothing
  const WorkerThreads workers_;
};

PipeImpl::PipeImpl(const torch::nn::Sequential& layers, const PipeOptions& options)
    : torch::nn::Module("ferry::Pipe"), runner_(std::make_unique<Runner>(layers, options)) {
  for (const auto& layer : layers->named_children()) register_module(layer.key(), layer.value());
  Module::train(layers->is_training());
}
PipeImpl::~PipeImpl() = default;

Tensor PipeImpl::forward(const Tensor& input) {
  Tensors outputs = run_forward({input}, kForm<Tensor>);
  if (outputs.size() != 1) {
    refuse("the last layer gives " + std::to_string(outputs.size()) +
           " tensors: call forward with a vector");
  }
  return std::move(outputs.front());
}
Tensors PipeImpl::forward(const Tensors& inputs) { return run_forward(inputs, kForm<Tensors>); }
Tensors PipeImpl::run_forward(const Tensors& inputs, const Form& form) {
  return runner_->forward(inputs, form);
}

Tensor PipeImpl::step(const Tensor& input, const Tensor& target, const Loss& loss) {
  const auto of_one = [&loss](const Tensors& outputs, const Tensors& targets) {
    if (outputs.size() != 1) {
      refuse("the last layer gives " + std::to_string(outputs.size()) +
             " tensors: call step with vectors");
    }
    return loss(outputs.front(), targets.front());
  };
  return run_step({input}, {target}, of_one, kForm<Tensor>);
}
Tensor PipeImpl::step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss) {
  return run_step(inputs, targets, loss, kForm<Tensors>);
}
Tensor PipeImpl::run_step(const Tensors& inputs, const Tensors& targets, const LossOfMany& loss,
                          const Form& form) {
  return runner_->step(inputs, targets, loss, form);
}

const PipeOptions& PipeImpl::options() const { return runner_->options; }
torch::nn::Sequential PipeImpl::layers() const { return runner_->sequential; }
const std::vector<torch::Device>& PipeImpl::devices() const { return runner_->devices; }
std::map<std::size_t, Offload> PipeImpl::offloads() const { return runner_->offloads(); }

void PipeImpl::train(bool on) {
  Module::train(on);
  runner_->sequential.ptr()->train(on);
}
void PipeImpl::to(torch::Dtype dtype, bool non_blocking) { Module::to(dtype, non_blocking); }
void PipeImpl::to(torch::Device, bool) {
  refuse("expected the layers to stay on their stages' devices (PipeOptions::devices)");
}
void PipeImpl::to(torch::Device device, torch::Dtype, bool) { to(device, false); }
void PipeImpl::pretty_print(std::ostream& stream) const {
  stream << "ferry::Pipe(stages=" << stages() << ", microbatches=" << options().microbatches()
         << ")";
}

}  // namespace ferry
