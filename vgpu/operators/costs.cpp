#include "vgpu/operators/costs.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "real/tensors/dtype.h"
#include "vgpu/operators/host_views.h"

namespace ferry::vgpu {
namespace {

Layout layout_of(const at::Tensor& tensor) {
  return {real::to_dtype(tensor.scalar_type()).value_or(DType::kF64), tensor.sizes().vec(),
          tensor.strides().vec(), tensor.storage_offset()};
}

}  // namespace

CallCost::CallCost(const Operator& op, c10::DeviceType device)
    : op_(op), device_(device), call_{.name = op.label, .in = {}, .out = {}, .writes = {}} {}

bool CallCost::counts(const at::Tensor& tensor) const {
  return tensor.defined() && tensor.device().type() == device_;
}

void CallCost::add_arguments(c10::ArrayRef<const c10::IValue> arguments) {
  const auto& schema = op_.op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size() && i < schema.size(); ++i) {
    if (arguments[i].isBool()) call_.flags.set(schema[i].name(), arguments[i].toBool());
    if (arguments[i].isString()) call_.flags.set(schema[i].name(), arguments[i].toStringRef());
    each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!counts(tensor)) return;
      if (op_.outs[i]) return call_.out.push_back(&layouts_.emplace_back(layout_of(tensor)));
      if (op_.writes[i]) call_.writes.push_back(static_cast<std::uint32_t>(call_.in.size()));
      call_.in.push_back(&layouts_.emplace_back(layout_of(tensor)));
      if (!computes_in_ && tensor.is_floating_point()) computes_in_ = layouts_.back().dtype;
    });
  }
}

void CallCost::add_results(c10::ArrayRef<c10::IValue> results) {
  for (std::size_t i = 0; i < results.size() && i < op_.returned_as.size(); ++i) {
    if (op_.returned_as[i]) continue;
    each_tensor(results[i], [&](const at::Tensor& tensor) {
      if (counts(tensor)) call_.out.push_back(&layouts_.emplace_back(layout_of(tensor)));
    });
  }
}

KernelCost CallCost::cost() const {
  const OpCosts costs = op_costs(call_);
  return {.flops = costs.flops,
          .bytes = costs.read_bytes + costs.written_bytes,
          .computes_in = computes_in_.value_or(DType::kF32),
          .kernels = costs.kernels,
          .products = costs.products,
          .op = op_.label};
}

KernelCost cost_of(const Operator& op, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& results) {
  CallCost call(op, c10::DeviceType::CUDA);
  call.add_arguments(c10::ArrayRef<const c10::IValue>(arguments.data(), arguments.size()));
  call.add_results(results);
  return call.cost();
}

}  // namespace ferry::vgpu
