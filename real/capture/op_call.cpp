#include "real/capture/op_call.h"

#include "formats/op_costs.h"

namespace ferry::real::capture {
void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& see) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) see(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) each_tensor(each, see);
  }
}

void each_argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                   const std::function<void(const at::Tensor&, bool)>& see) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack.size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    each_tensor(stack[first + i], [&](const at::Tensor& tensor) { see(tensor, writes); });
  }
}

OpFlags flags_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  OpFlags flags;
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack.size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = stack[first + i];
    if (value.isBool()) flags.set(arguments[i].name(), value.toBool());
    if (value.isString()) flags.set(arguments[i].name(), value.toStringRef());
  }
  return flags;
}

void set_costs(OpEvent& event) {
  OpCall call{
      .name = event.name, .in = {}, .out = {}, .writes = event.writes, .flags = event.flags};
  for (const Ref& ref : event.in) call.in.push_back(&ref.layout);
  for (const Ref& ref : event.out) call.out.push_back(&ref.layout);
  const OpCosts costs = op_costs(call);
  event.flops = costs.flops;
  event.read_bytes = costs.read_bytes;
  event.written_bytes = costs.written_bytes;
  event.kernels = costs.kernels;
  event.products = costs.products;
}

}  // namespace ferry::real::capture
