#include "real/api/replayed_op.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "real/api/known_op.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/cpu_generator.h"
#include "real/tensors/accelerator.h"

namespace ferry::real {
namespace {

using c10::OperatorHandle;
using torch::jit::Stack;

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// These overwrite all of the tensor that they are called on, and read none of it.
bool is_overwrite(std::string_view op) {
  constexpr std::array<std::string_view, 11> kNames = {
      "aten::copy_",      "aten::fill_",   "aten::zero_",      "aten::bernoulli_",
      "aten::uniform_",   "aten::normal_", "aten::random_",    "aten::exponential_",
      "aten::geometric_", "aten::cauchy_", "aten::log_normal_"};
  return std::ranges::find(kNames, op) != kNames.end();
}

constexpr std::string_view kMean = "running_mean";
constexpr std::string_view kVariance = "running_var";

// These write their running statistics if `training` is true; their schema does not say so.
bool keeps_statistics(std::string_view op) {
  return op == "aten::native_batch_norm" || op == "aten::cudnn_batch_norm" ||
         op == "aten::miopen_batch_norm";
}

// True if the schema does not show all effects: the op writes more than it declares, or gives a
// tensor other memory.
bool is_secretive(const c10::FunctionSchema& schema) {
  const std::string_view name = schema.name();
  // It is unknown if operators of other libraries use random numbers or write.
  if (!name.starts_with("aten::")) return true;
  for (const std::string_view part :
       {"aten::set_", "aten::resize", "aten::_resize", "aten::rrelu_with_noise", "aten::_cudnn_rnn",
        "aten::_cudnn_init_dropout_state", "aten::miopen_rnn"}) {
    if (name.starts_with(part)) return true;
  }
  return std::ranges::any_of(schema.arguments(), [&](const auto& argument) {
    return (argument.name() == kMean && !keeps_statistics(name)) ||
           (is_written(argument) && argument.kwarg_only());
  });
}

// Lists of tensors are supported, lists of lists of tensors are not.
bool can_be_taken_apart(const c10::Argument& argument) {
  if (!holds_tensors(*argument.type())) return true;
  const std::string type = argument.type()->str();
  return type == "Tensor" || type == "Tensor?" || type == "Tensor[]" || type == "Tensor?[]" ||
         type == "Tensor[]?";
}

OpTraits new_traits(const OperatorHandle& op) {
  OpTraits traits;
  if (!op.hasSchema()) return traits;
  const c10::FunctionSchema& schema = op.schema();
  const bool makes = std::ranges::any_of(schema.returns(), [](const auto& result) {
    return holds_tensors(*result.type()) && !result.alias_info();
  });
  const bool writes = std::ranges::any_of(schema.arguments(), is_written);
  traits.is_seen = (makes || writes) && !schema.name().starts_with("profiler::");
  traits.can_run_again = !schema.is_vararg() && !schema.is_varret() && !is_secretive(schema) &&
                         std::ranges::all_of(schema.arguments(), can_be_taken_apart);
  traits.keeps_statistics = keeps_statistics(schema.name());
  traits.makes_blank = is_empty(schema.name());
  traits.overwrites = is_overwrite(schema.name());
  return traits;
}

template <class Add>
void each_tensor(const c10::IValue& value, Add add) {
  if (value.isTensor()) {
    add(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) add(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      if (tensor) add(*tensor);
    }
  }
}

at::Tensor state_of(const at::Generator& of) {
  at::Generator generator = of;
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}
void set_state(at::Generator generator, const at::Tensor& state) {
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}
// Returns another generator with that state.
at::Generator another(const at::Generator& like, const at::Tensor& state) {
  at::Generator generator = like.clone();
  set_state(generator, state);
  return generator;
}

}  // namespace

const OpTraits& traits_of(const OperatorHandle& op) {
  thread_local std::unordered_map<const c10::FunctionSchema*, OpTraits> known;
  static const OpTraits unknown;
  if (!op.hasSchema()) return unknown;
  const auto [found, added] = known.try_emplace(&op.schema());
  if (added) found->second = new_traits(op);
  return found->second;
}

bool can_run_again(const OperatorHandle& op, const Stack& stack) {
  const OpTraits& traits = traits_of(op);
  if (!traits.can_run_again || !traits.keeps_statistics) return traits.can_run_again;
  const auto& arguments = op.schema().arguments();
  const auto argument = [&](std::string_view name) -> const c10::IValue& {
    const auto at = std::ranges::find(arguments, name, &c10::Argument::name) - arguments.begin();
    return torch::jit::peek(stack, static_cast<std::size_t>(at), arguments.size());
  };
  const c10::IValue& mean = argument(kMean);
  return argument("training").toBool() || !mean.isTensor() || !mean.toTensor().defined();
}

std::vector<OpTensor> tensors_of(const OperatorHandle& op, const Stack& stack) {
  std::vector<OpTensor> tensors;
  const auto& arguments = op.schema().arguments();
  const auto values = torch::jit::last(stack, arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    each_tensor(values[i], [&](const at::Tensor& tensor) {
      if (tensor.defined()) tensors.push_back({tensor, is_written(arguments[i])});
    });
  }
  return tensors;
}

std::vector<at::Tensor> results_of(const OperatorHandle& op, const Stack& stack) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().returns().size())) {
    each_tensor(value, [&](const at::Tensor& tensor) {
      if (tensor.defined()) tensors.push_back(tensor);
    });
  }
  return tensors;
}

std::shared_ptr<const Ambient> AutocastNow::get() {
  std::vector<std::int64_t> key{at::autocast::is_autocast_cache_enabled()};
  const auto add = [&key](c10::DeviceType device) {
    key.push_back(at::autocast::is_autocast_enabled(device));
    key.push_back(static_cast<std::int64_t>(at::autocast::get_autocast_dtype(device)));
  };
  add(c10::kCPU);
  if (const auto accelerator = present_accelerator()) add(*accelerator);
  if (!ambient_ || key != key_) {
    ambient_ = std::make_shared<const Ambient>(std::span<const at::Tensor>(), /*random=*/false);
    key_ = std::move(key);
  }
  return ambient_;
}

ReplayedOp::ReplayedOp(const OperatorHandle& op, c10::DispatchKeySet keys, const Stack& stack,
                       std::shared_ptr<const Ambient> ambient, bool grad_mode)
    : op_(op),
      keys_(keys),
      ambient_(std::move(ambient)),
      grad_mode_(grad_mode),
      drawn_(drawn(op, stack)) {
  const auto& arguments = op.schema().arguments();
  const auto values = torch::jit::last(stack, arguments.size());
  const bool copies = traits_of(op).keeps_statistics;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Argument& argument = arguments_.emplace_back(apart(values[i]));
    const std::string& name = arguments[i].name();
    argument.copied = copies && (name == kMean || name == kVariance);
  }
}

ReplayedOp::Argument ReplayedOp::apart(const c10::IValue& value) {
  Argument argument;
  if (value.isTensor() && value.toTensor().defined()) {
    argument.kind = Argument::Kind::kTensor;
  } else if (value.isTensorList()) {
    argument.kind = Argument::Kind::kList;
    for (const at::Tensor& tensor : value.toTensorList()) {
      argument.defined.push_back(tensor.defined());
    }
  } else if (value.isOptionalTensorList()) {
    argument.kind = Argument::Kind::kOptionals;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
      argument.defined.push_back(tensor && tensor->defined());
    }
  } else {
    argument.value = value;
  }
  return argument;
}

std::optional<ReplayedOp::Drawn> ReplayedOp::drawn(const OperatorHandle& op, const Stack& stack) {
  const Draw& draw = draw_of(op);
  if (!draw.draws) return std::nullopt;
  Drawn drawn{draw.argument, {}, {}};
  if (draw.argument) {
    const c10::IValue& given =
        torch::jit::peek(stack, *draw.argument, op.schema().arguments().size());
    if (!given.isNone()) drawn.generator = given.toGenerator();
  }
  if (!drawn.generator.defined()) {
    const c10::Device device = drawing_device(op, stack);
    drawn.generator =
        device.is_cpu() ? cpu_generator() : at::globalContext().defaultGenerator(device);
  }
  drawn.state = state_of(drawn.generator);
  return drawn;
}

Stack ReplayedOp::stack(const std::vector<at::Tensor>& tensors) const {
  Stack stack;
  std::size_t next = 0;
  for (const Argument& argument : arguments_) {
    if (argument.kind == Argument::Kind::kOther) {
      stack.push_back(argument.value);
    } else if (argument.kind == Argument::Kind::kTensor) {
      const at::Tensor& tensor = tensors.at(next++);
      stack.emplace_back(argument.copied ? tensor.clone() : tensor);
    } else if (argument.kind == Argument::Kind::kList) {
      c10::List<at::Tensor> list;
      for (const bool defined : argument.defined) {
        list.push_back(defined ? tensors.at(next++) : at::Tensor());
      }
      stack.emplace_back(std::move(list));
    } else {
      c10::List<std::optional<at::Tensor>> list;
      for (const bool defined : argument.defined) {
        list.push_back(defined ? std::optional(tensors.at(next++)) : std::nullopt);
      }
      stack.emplace_back(std::move(list));
    }
  }
  return stack;
}

void ReplayedOp::run_with_numbers(Stack* stack) const {
  if (!drawn_) return run_below(op_, keys_, stack);
  if (drawn_->argument) {
    torch::jit::peek(*stack, *drawn_->argument, arguments_.size()) =
        another(drawn_->generator, drawn_->state);
    return run_below(op_, keys_, stack);
  }
  if (drawn_->generator.device().is_cpu()) {
    const LentCpuGenerator lent(another(drawn_->generator, drawn_->state));
    return run_below(op_, keys_, stack);
  }
  struct Back {
    ~Back() { set_state(generator, state); }
    at::Generator generator;
    at::Tensor state;
  } const back{drawn_->generator, state_of(drawn_->generator)};
  set_state(drawn_->generator, drawn_->state);
  run_below(op_, keys_, stack);
}

std::vector<at::Tensor> ReplayedOp::run(const std::vector<at::Tensor>& tensors) const {
  const c10::AutoGradMode grad_mode(grad_mode_);
  const Ambient::Scope ambient(*ambient_);
  // Ops inside this op must not see autograd, as in forward: there is no graph.
  const c10::impl::ExcludeDispatchKeyGuard below(
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::DispatchKeySet(kBelowAutograd));
  Stack stack = this->stack(tensors);
  run_with_numbers(&stack);
  return results_of(op_, stack);
}

}  // namespace ferry::real
