// Measures the cost of each layer of a chain. Source: torchgpipe/balance/profile.py.

#include "real/pipeline/balance.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/sequential.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "ferry/pipe.h"
#include "real/autograd/ambient.h"
#include "real/pipeline/layers.h"
#include "real/tensors/torch_error.h"
#include "shared/pipeline/balance.h"
#include "shared/seam/hooks.h"

namespace ferry {
namespace {

using real::PipeLayers;
using real::TorchAutograd;
using torch::Tensor;
using Tensors = std::vector<Tensor>;

// Returns the inputs of a layer: they have no graph, and require grad where the values do.
Tensors cut(const Tensors& values) {
  Tensors result;
  for (const Tensor& value : values) result.push_back(TorchAutograd().detach(value));
  return result;
}
class DetachedSkips final : public PlainSkips<Tensor> {
 public:
  Tensor load(const SkipName& name) override {
    return TorchAutograd().detach(PlainSkips<Tensor>::load(name));
  }
};

// Restores what running the layers changes. Layers run in train mode whatever their own mode is,
// because pipelines are balanced for training.
class Restored {
 public:
  explicit Restored(const torch::nn::Sequential& layers)
      : parameters_(layers->parameters()), buffers_(layers->buffers()) {
    for (const Tensor& parameter : parameters_) {
      gradients_.push_back(std::exchange(parameter.mutable_grad(), {}));
    }
    for (const Tensor& buffer : buffers_) values_.push_back(buffer.detach().clone());
    for (const auto& module : layers->modules(/*include_self=*/true)) {
      modes_.emplace_back(module, module->is_training());
    }
    layers.ptr()->train();
  }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;
  ~Restored() {
    const torch::NoGradGuard no_grad;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].mutable_grad() = gradients_[i];
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(values_[i]);
    // train() also changes the children of a module, so set each module before its children.
    for (const auto& [module, training] : modes_) {
      if (module->is_training() != training) module->train(training);
    }
  }

 private:
  const Tensors parameters_;
  const Tensors buffers_;
  Tensors gradients_;
  Tensors values_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
  const real::Ambient ambient_{{}, /*random=*/true};
  const real::Ambient::Scope fork_{ambient_};
};

// Runs each layer once, by itself: measure(layer, run) calls `run` and returns its result.
template <class Measure>
void each_layer(const torch::nn::Sequential& layers, const Tensor& sample, Measure measure) {
  const Restored restored(layers);
  const torch::AutoGradMode grad(true);
  const std::vector<std::int64_t> one_each(layers->size(), 1);
  const auto chain = std::make_shared<PipeLayers>(*layers, one_each);
  const SkipTrackerGuard<TorchAutograd> guard(TorchAutograd(), std::make_shared<DetachedSkips>());
  Tensors values = {sample};
  for (std::size_t i = 0; i < layers->size(); ++i) {
    const auto run = PipeLayers::stage(chain, i, pipe_impl::kForm<Tensor>);
    values = measure(i, [&] { return run(cut(values)); });
  }
}

void synchronize(const Tensor& tensor) {
  if (tensor.device().is_cpu()) return;
  c10::impl::VirtualGuardImpl(tensor.device().type()).synchronizeDevice(tensor.device().index());
}

void go_backward(const Tensors& outputs) {
  Tensors roots;
  Tensors gradients;
  for (const Tensor& output : outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    roots.push_back(output);
    gradients.push_back(torch::ones_like(output));
  }
  torch::autograd::backward(roots, gradients);
}

// Adds up the bytes of the saved storages, each once.
class SavedBytes final : public Hooks<Tensor> {
 public:
  explicit SavedBytes(const Tensors& parameters) {
    for (const Tensor& parameter : parameters) seen_.insert(of(parameter));
  }
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    if (tensor.has_storage() && seen_.insert(of(tensor)).second) {
      bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
      kept_.push_back(tensor.storage());  // kept, so that its address is not reused
    }
    return std::make_unique<Kept>(tensor);
  }
  std::int64_t bytes = 0;

 private:
  struct Kept final : Saved<Tensor> {
    explicit Kept(Tensor saved) : tensor(std::move(saved)) {}
    Tensor unpack() override { return tensor; }
    Tensor tensor;
  };
  static const void* of(const Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  }
  std::set<const void*> seen_;
  std::vector<c10::Storage> kept_;
};

std::vector<std::int64_t> parts(const std::vector<std::int64_t>& costs, std::int64_t partitions) {
  const auto sizes = real::with_torch_errors([&] {
    return balance(costs, static_cast<std::size_t>(std::max<std::int64_t>(partitions, 0)));
  });
  return {sizes.begin(), sizes.end()};
}

}  // namespace

std::vector<std::int64_t> real::balance_by_clock(const torch::nn::Sequential& layers,
                                                 std::int64_t partitions, const Tensor& sample,
                                                 std::chrono::duration<double> timeout,
                                                 const ClockNow& now) {
  std::vector<std::int64_t> fastest_ns(layers->size());
  parts(fastest_ns, partitions);  // throws before any measurement
  const auto end = now() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout);
  // The first round warms up.
  for (int round = 0; round < 2 || now() < end; ++round) {
    each_layer(layers, sample, [&](std::size_t i, const auto& run) {
      synchronize(sample);
      const auto begin = now();
      Tensors outputs = run();
      go_backward(outputs);
      synchronize(sample);
      const std::int64_t took = (now() - begin).count();
      fastest_ns[i] = round < 2 ? took : std::min(fastest_ns[i], took);
      return outputs;
    });
  }
  return parts(fastest_ns, partitions);
}

std::vector<std::int64_t> balance_by_time(const torch::nn::Sequential& layers,
                                          std::int64_t partitions, const Tensor& sample,
                                          std::chrono::duration<double> timeout) {
  return real::balance_by_clock(layers, partitions, sample, timeout, [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
  });
}

std::vector<std::int64_t> balance_by_size(const torch::nn::Sequential& layers,
                                          std::int64_t partitions, const torch::Tensor& sample,
                                          double parameter_scale) {
  std::vector<std::int64_t> bytes(layers->size());
  parts(bytes, partitions);
  each_layer(layers, sample, [&](std::size_t i, const auto& run) {
    const Tensors parameters = layers->ptr(i)->parameters();
    std::int64_t own = 0;
    for (const Tensor& parameter : parameters) own += static_cast<std::int64_t>(parameter.nbytes());
    const auto saved = std::make_shared<SavedBytes>(parameters);
    const HooksGuard<TorchAutograd> guard(TorchAutograd(), saved);
    Tensors outputs = run();
    bytes[i] = saved->bytes + std::llround(static_cast<double>(own) * parameter_scale);
    return outputs;
  });
  return parts(bytes, partitions);
}

}  // namespace ferry
