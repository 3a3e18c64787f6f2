#include "ferry/selective.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "real/api/known_op.h"
#include "real/autograd/below_autograd.h"
#include "real/autograd/cpu_generator.h"
#include "real/autograd/torch_autograd.h"
#include "real/tensors/torch_error.h"
#include "real/tensors/torch_tensors.h"

namespace ferry {
namespace real {
namespace {

using c10::DispatchKeySet;
using c10::OperatorHandle;
using torch::jit::Stack;

// The effect of an op on a default random generator: its state before and after. If the generator
// is in the first state again, it is set to the second. If it is not, preserve_rng_state is off,
// and the generator is left alone.
class Drawn {
 public:
  // Returns null if the op uses no random numbers.
  static std::shared_ptr<Drawn> before(const OperatorHandle& op, const Stack& stack) {
    if (!op.hasTag(at::Tag::nondeterministic_seeded)) return nullptr;
    return std::make_shared<Drawn>(real::drawing_device(op, stack));
  }
  explicit Drawn(c10::Device device)
      : generator_(device.is_cpu() ? real::cpu_generator()
                                   : at::globalContext().defaultGenerator(device)),
        before_(state()) {}

  // Returns true if the op used the generator.
  bool after() {
    after_ = state();
    return !at::equal(before_, after_);
  }
  void again() {
    const std::lock_guard lock(generator_.mutex());
    if (at::equal(generator_.get_state(), before_)) generator_.set_state(after_);
  }

 private:
  at::Tensor state() {
    const std::lock_guard lock(generator_.mutex());
    return generator_.get_state();
  }

  at::Generator generator_;
  const at::Tensor before_;
  at::Tensor after_;
};

// What stands among the kept tensors of a call, in the order of its results: a value that is not a
// tensor, the length of a list of tensors, or an effect on a generator.
struct Other {
  c10::IValue value;
  std::optional<std::size_t> list;  // if set: the next so many tensors form a list
  std::shared_ptr<Drawn> drawn;     // if set: not a result, but an effect on a generator
};

struct Device : TorchTensors {
  using Mutex = std::mutex;
  static Tensor alias(const Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    return Tensor(impl.shallow_copy_and_detach(impl.version_counter(),
                                               /*allow_tensor_metadata_change=*/false));
  }
};

using Cache = SelectiveCache<Device, Other>;
using Recompute = SelectiveRecompute<Device, Other>;

void add(Cache::Outputs& outputs, const c10::IValue& value) {
  if (value.isTensorList()) {
    const auto tensors = value.toTensorList();
    outputs.emplace_back(Other{{}, tensors.size(), nullptr});
    for (const at::Tensor& tensor : tensors) add(outputs, tensor);
  } else if (value.isTensor() && value.toTensor().defined()) {
    outputs.emplace_back(value.toTensor());
  } else {
    outputs.emplace_back(Other{value, std::nullopt, nullptr});
  }
}

Cache::Outputs outputs_of(const OperatorHandle& op, const Stack& stack) {
  Cache::Outputs outputs;
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().returns().size())) {
    add(outputs, value);
  }
  return outputs;
}

at::Tensor tensor_of(const Cache::Output& output) {
  const auto* const tensor = std::get_if<at::Tensor>(&output);
  return tensor ? *tensor : at::Tensor();
}

// Puts kept results on the stack instead of running the op.
void answer(const OperatorHandle& op, Stack* stack, const Cache::Outputs& outputs) {
  torch::jit::drop(*stack, op.schema().arguments().size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto* const other = std::get_if<Other>(&outputs[i]);
    if (!other) {
      stack->emplace_back(tensor_of(outputs[i]));
    } else if (other->drawn) {
      other->drawn->again();
    } else if (other->list) {
      c10::List<at::Tensor> tensors;
      for (std::size_t n = *other->list; n > 0; --n) tensors.push_back(tensor_of(outputs[++i]));
      stack->emplace_back(std::move(tensors));
    } else {
      stack->push_back(other->value);
    }
  }
}

// True for a cast between floating-point types on one device. Autocast casts a weight that it has
// not cast before, so a recompute may have more or fewer casts than forward.
bool is_cast(const OperatorHandle& op, const Stack& stack) {
  static const c10::OperatorName to_copy("aten::_to_copy", "");
  if (op.operator_name() != to_copy) return false;
  const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
  const at::Tensor& self = arguments[0].toTensor();
  const auto dtype = arguments[1].toOptional<at::ScalarType>();
  const auto device = arguments[3].toOptional<at::Device>();
  return self.is_floating_point() && dtype && at::isFloatingType(*dtype) &&
         (!device || *device == self.device());
}

bool is_asked_for(const OperatorHandle& op, const Stack& stack) {
  return can_keep(op) && !is_cast(op, stack);
}

CheckpointPolicy ask(const SelectivePolicy& policy, Cache& cache, const std::string& name,
                     const OperatorHandle& op, const Stack& stack) {
  return policy(
      {name, cache.calls(name), op, torch::jit::last(stack, op.schema().arguments().size())});
}

class Forward final : public OpScope {
 public:
  Forward(std::shared_ptr<Cache> cache, std::shared_ptr<const SelectivePolicy> policy)
      : cache_(std::move(cache)), policy_(std::move(policy)) {}

  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) override {
    if (!is_asked_for(op, *stack)) return run_outside(op, keys, stack);
    const std::string name = c10::toString(op.operator_name());
    CheckpointPolicy policy{};
    std::shared_ptr<Drawn> drawn;
    {
      const Aside aside;
      policy = ask(*policy_, *cache_, name, op, *stack);
      if (keeps(policy)) drawn = Drawn::before(op, *stack);
    }
    try {
      run_outside(op, keys, stack);
    } catch (...) {  // the function may catch it, so a recompute runs the op again
      cache_->ran(name, CheckpointPolicy::kMustRecompute, {});
      throw;
    }
    const Aside aside;
    Cache::Outputs outputs;
    if (keeps(policy)) outputs = outputs_of(op, *stack);
    if (drawn && drawn->after()) outputs.emplace_back(Other{{}, std::nullopt, std::move(drawn)});
    cache_->ran(name, policy, outputs);
  }

 private:
  const std::shared_ptr<Cache> cache_;
  const std::shared_ptr<const SelectivePolicy> policy_;
};

class Again final : public OpScope {
 public:
  Again(std::shared_ptr<Cache> cache, std::shared_ptr<const SelectivePolicy> policy)
      : cache_(cache), recompute_(std::move(cache)), policy_(std::move(policy)) {}

  void run(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) override {
    if (!is_asked_for(op, *stack)) return run_outside(op, keys, stack);
    {
      const Aside aside;
      const std::string name = c10::toString(op.operator_name());
      const auto policy = [&] { return ask(*policy_, *cache_, name, op, *stack); };
      if (const auto outputs = recompute_.next(name, policy)) {
        return answer(op, stack, *outputs);
      }
    }
    run_outside(op, keys, stack);
  }

 private:
  const std::shared_ptr<Cache> cache_;
  Recompute recompute_;
  const std::shared_ptr<const SelectivePolicy> policy_;
};

}  // namespace
}  // namespace real

std::function<CheckpointContexts()> selective(SelectivePolicy policy,
                                              bool allow_cache_entry_mutation) {
  if (!policy) {
    throw real::torch_error(
        ValueError("policy_fn_or_list must be either a function or a list of ops."));
  }
  real::install_below_autograd();
  return [policy = std::make_shared<const SelectivePolicy>(std::move(policy)),
          allow_cache_entry_mutation] {
    const auto cache = std::make_shared<real::Cache>(real::Device(), real::TorchAutograd().hooks(),
                                                     allow_cache_entry_mutation);
    return CheckpointContexts{
        [cache, policy] {
          return real::OpScope::enter(std::make_shared<real::Forward>(cache, policy));
        },
        [cache, policy] {
          return real::OpScope::enter(std::make_shared<real::Again>(cache, policy));
        }};
  };
}

std::function<CheckpointContexts()> selective(SelectiveChoice choice,
                                              bool allow_cache_entry_mutation) {
  if (!choice) return selective(SelectivePolicy(), allow_cache_entry_mutation);
  return selective(
      [choice = std::move(choice)](const SelectiveCall& call) { return to_policy(choice(call)); },
      allow_cache_entry_mutation);
}

std::function<CheckpointContexts()> selective(const std::vector<std::string>& ops,
                                              bool allow_cache_entry_mutation) {
  std::set<std::string> names;
  for (const std::string& op : ops) names.insert(real::known_op(op));
  return selective([names = std::move(names)](
                       const SelectiveCall& call) { return to_policy(names.contains(call.op)); },
                   allow_cache_entry_mutation);
}

}  // namespace ferry
