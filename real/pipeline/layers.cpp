#include "real/pipeline/layers.h"

#include <c10/util/Type.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "real/tensors/torch_error.h"
#include "shared/seam/checkpoint_context.h"

namespace ferry::real {

namespace {

using pipe_impl::Form;
using pipe_impl::kForm;
using torch::nn::AnyModule;
using torch::nn::AnyValue;

template <std::size_t... I>
std::tuple<std::tuple_element_t<I * 0, std::tuple<at::Tensor>>...> tuple_of(
    std::index_sequence<I...>);
template <std::size_t N>
using TupleOf = decltype(tuple_of(std::make_index_sequence<N>()));

// The type of a layer is not known here, so each type that it may return is tried.
constexpr const Form* kForms[] = {&kForm<at::Tensor>,
                                  &kForm<std::vector<at::Tensor>>,
                                  &kForm<TupleOf<1>>,
                                  &kForm<TupleOf<2>>,
                                  &kForm<TupleOf<3>>,
                                  &kForm<TupleOf<4>>,
                                  &kForm<TupleOf<5>>,
                                  &kForm<TupleOf<6>>,
                                  &kForm<TupleOf<7>>,
                                  &kForm<TupleOf<8>>,
                                  &kForm<std::pair<at::Tensor, at::Tensor>>,
                                  &kForm<std::tuple<at::Tensor, TupleOf<2>>>};

[[noreturn]] void refuse(const std::string& text) {
  throw torch_error(ValueError("ferry::Pipe: " + text));
}

// Returns the stage of each layer.
std::vector<std::size_t> stage_of(const std::vector<std::int64_t>& balance) {
  std::vector<std::size_t> stages;
  for (std::size_t stage = 0; stage < balance.size(); ++stage) {
    stages.insert(stages.end(), static_cast<std::size_t>(balance[stage]), stage);
  }
  return stages;
}

// Throws if two stages share a parameter or module: their threads would use it at the same time.
void refuse_shared(const torch::nn::SequentialImpl& layers,
                   const std::vector<std::size_t>& stages) {
  struct Owner {
    std::size_t stage;
    std::string name;
  };
  std::map<const void*, Owner> owners;
  const auto names = layers.named_children().keys();
  const auto own = [&](const void* thing, std::size_t layer, const std::string& inside,
                       const char* what, const char* way) {
    const std::string name = names[layer] + (inside.empty() ? "" : "." + inside);
    const auto [found, is_new] = owners.try_emplace(thing, Owner{stages[layer], name});
    if (is_new || found->second.stage == stages[layer]) return;
    refuse("'" + found->second.name + "' and '" + name + "' are one " + what + ", in stages " +
           std::to_string(found->second.stage) + " and " + std::to_string(stages[layer]) + ": " +
           way);
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& parameter : layers.ptr(i)->named_parameters()) {
      own(parameter.value().unsafeGetTensorImpl(), i, parameter.key(), "parameter",
          "their threads would add to its gradient in no order. Stash it in the first stage and "
          "pop it in the other (ferry/skip.h)");
    }
    for (const auto& module : layers.ptr(i)->named_modules()) {
      own(module.value().get(), i, module.key(), "module", "expected a module for each");
    }
  }
}

}  // namespace

PipeOptions completed(PipeOptions options, const torch::nn::SequentialImpl& sequential) {
  const std::size_t layers = sequential.size();
  const std::vector<std::int64_t>& balance = options.balance();
  if (balance.empty() && layers > 0) {
    refuse(
        "expected PipeOptions::balance, the number of layers of each stage "
        "(ferry::balance_by_time proposes one)");
  }
  for (const std::int64_t each : balance) {
    if (each < 1)
      refuse("expected a balance of at least 1 layer for each stage, found " +
             std::to_string(each));
  }
  const std::int64_t all = std::accumulate(balance.begin(), balance.end(), std::int64_t{0});
  if (all != static_cast<std::int64_t>(layers)) {
    refuse("module and sum of balance have different length (module: " + std::to_string(layers) +
           ", sum of balance: " + std::to_string(all) + ")");
  }
  if (options.microbatches() < 1) {
    refuse("number of micro-batches must be a positive integer, found " +
           std::to_string(options.microbatches()));
  }
  const std::int64_t each = options.stages_per_device();
  const auto stages = static_cast<std::int64_t>(balance.size());
  if (each < 1 || stages % each != 0) {
    refuse("expected stages that divide by stages_per_device, found " + std::to_string(stages) +
           " for " + std::to_string(each));
  }
  const auto count = static_cast<std::size_t>(stages / each);
  if (options.devices().empty()) options.devices().resize(count, torch::Device(torch::kCPU));
  if (options.devices().size() < count) {
    refuse("too few devices to hold given partitions (devices: " +
           std::to_string(options.devices().size()) + ", expected: " + std::to_string(count) + ")");
  }
  options.devices().erase(options.devices().begin() + static_cast<std::ptrdiff_t>(count),
                          options.devices().end());
  const std::size_t policies = options.stage_policies().size();
  if (policies > 0 && policies != balance.size()) {
    refuse("expected stage_policies for each of " + std::to_string(stages) + " stages, found " +
           std::to_string(policies));
  }
  if (count > 0) {  // throws before anything runs
    with_torch_errors([&] {
      make_schedule(options.schedule(), count, static_cast<std::size_t>(each),
                    static_cast<std::size_t>(options.microbatches()));
    });
  }
  refuse_shared(sequential, stage_of(balance));
  return options;
}

namespace {

// Adds the running statistics of a norm that has some. Does nothing for other modules.
template <class... Norms>
void add_statistics(torch::nn::Module& module, std::vector<at::Tensor*>& found) {
  const auto add = [&found](auto* norm) {
    if (norm == nullptr) return;
    for (at::Tensor* each : {&norm->running_mean, &norm->running_var, &norm->num_batches_tracked}) {
      if (each->defined()) found.push_back(each);
    }
  };
  (add(module.as<Norms>()), ...);
}

// While it lives, norms update copies of their statistics, because forward has counted the
// micro-batch already.
class CountedBefore {
 public:
  explicit CountedBefore(const std::vector<at::Tensor*>& statistics) : statistics_(statistics) {
    // Makes all copies before it swaps any, because memory for the next one may be missing.
    for (const at::Tensor* const each : statistics_) others_.push_back(each->clone());
    swap();
  }
  CountedBefore(const CountedBefore&) = delete;
  CountedBefore& operator=(const CountedBefore&) = delete;
  ~CountedBefore() { swap(); }

 private:
  void swap() {
    for (std::size_t i = 0; i < others_.size(); ++i) std::swap(*statistics_[i], others_[i]);
  }
  const std::vector<at::Tensor*>& statistics_;
  std::vector<at::Tensor> others_;  // the copies; after the swap, the norms' own
};

}  // namespace

PipeLayers::PipeLayers(const torch::nn::SequentialImpl& layers,
                       const std::vector<std::int64_t>& balance)
    : layers_(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(layers.size())),
      skips_(declared_skips(layers)),
      gives_(balance.size()) {
  first_.push_back(0);
  for (const std::int64_t each : balance) {
    first_.push_back(first_.back() + static_cast<std::size_t>(each));
  }
  layout_ =
      with_torch_errors<SkipError>([&] { return skip_layout(outside(skips_), stage_of(balance)); });
  statistics_.resize(stages());
  const std::vector<std::size_t> stage = stage_of(balance);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    for (const auto& module : layers.ptr(i)->modules()) {
      using namespace torch::nn;  // NOLINT(google-build-using-namespace)
      add_statistics<BatchNorm1dImpl, BatchNorm2dImpl, BatchNorm3dImpl, InstanceNorm1dImpl,
                     InstanceNorm2dImpl, InstanceNorm3dImpl>(*module, statistics_[stage[i]]);
    }
  }
}

void PipeLayers::move(std::size_t stage, const c10::Device& device) {
  for (std::size_t i = first_[stage]; i < first_[stage + 1]; ++i) layers_[i].ptr()->to(device);
}

PipeLayers::Function PipeLayers::stage(std::shared_ptr<PipeLayers> layers, std::size_t number,
                                       const Form& form) {
  return [layers = std::move(layers), number, &form](Tensors values) {
    const Form& given = number == 0 ? form : *layers->gives_[number - 1].load();
    return layers->run(number, std::move(values), given);
  };
}

PipeLayers::Tensors PipeLayers::run(std::size_t stage, Tensors values, const Form& form) {
  const TorchAutograd autograd;
  std::optional<CountedBefore> counted;
  if (checkpoint_context(autograd.hooks()).recomputing) counted.emplace(statistics_[stage]);
  AnyValue value = form.give(std::move(values));
  for (std::size_t i = first_[stage]; i < first_[stage + 1]; ++i) {
    const auto skips = std::make_shared<LayerSkips>(current_skip_tracker(autograd), skips_[i]);
    const SkipTrackerGuard<TorchAutograd> guard(autograd, skips);
    value = layers_[i].any_forward(std::move(value));
    skips->finish();
  }
  Tensors result;
  for (const Form* const each : kForms) {
    if (!each->take(value, result)) continue;
    gives_[stage].store(each);
    return result;
  }
  refuse("expected layers that return a tensor, a vector, a pair or a tuple of tensors, found " +
         c10::demangle(value.type_info().name()));
}

}  // namespace ferry::real
