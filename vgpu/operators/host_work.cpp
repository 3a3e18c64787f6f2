#include "vgpu/operators/host_work.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>

#include "vgpu/operators/costs.h"
#include "vgpu/operators/host_views.h"
#include "vgpu/operators/operator.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

std::thread::id program;
thread_local bool in_operator = false;

template <class Values>
bool is_on_cpu(const Values& values) {
  bool cpu = true;
  for (const c10::IValue& value : values) {
    each_tensor(value, [&](const at::Tensor& tensor) {
      cpu = cpu && tensor.is_cpu() && tensor.layout() == at::kStrided;
    });
  }
  return cpu;
}

bool is_of_the_program() {
  return std::this_thread::get_id() == program || torch::autograd::get_current_node() != nullptr;
}

bool makes_views(const Operator& op) {
  const auto& returns = op.op.schema().returns();
  return std::any_of(returns.begin(), returns.end(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

// Returns null if the operator computes nothing itself.
const Operator* find_operator(const c10::OperatorName& name) {
  thread_local std::unordered_map<c10::OperatorName, std::unique_ptr<Operator>> known;
  const auto [found, fresh] = known.try_emplace(name);
  if (!fresh) return found->second.get();
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return nullptr;
  auto computes = std::make_unique<Operator>(*op);
  if (!makes_views(*computes)) found->second = std::move(computes);
  return found->second.get();
}

struct Outermost final : at::ObserverContext {
  explicit Outermost(const Operator& op) : cost(op, c10::DeviceType::CPU) {}
  CallCost cost;
};

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& function) {
  if (in_operator || !is_of_the_program() || !is_on_cpu(function.inputs())) return nullptr;
  const auto name = function.operator_name();
  const Operator* const op = name ? find_operator(*name) : nullptr;
  if (op == nullptr) return nullptr;
  in_operator = true;
  auto outermost = std::make_unique<Outermost>(*op);
  outermost->cost.add_arguments(function.inputs());
  return outermost;
}

void ends(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  in_operator = false;
  if (!is_on_cpu(function.outputs())) return;  // the result was made on a device
  CallCost& cost = static_cast<Outermost*>(context)->cost;
  cost.add_results(function.outputs());
  compute_on_host(cost.cost());
}

}  // namespace

void count_host_work() {
  program = std::this_thread::get_id();
  at::addGlobalCallback(at::RecordFunctionCallback(begins, ends)
                            .needsInputs(true)
                            .needsOutputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

}  // namespace ferry::vgpu
