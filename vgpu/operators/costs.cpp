#include "vgpu/operators/costs.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "formats/op_costs.h"
#include "real/tensors/dtype.h"
#include "vgpu/operators/host_views.h"

namespace ferry::vgpu {
namespace {

Layout layout_of(const at::Tensor& tensor) {
  return {real::to_dtype(tensor.scalar_type()).value_or(DType::kF64), tensor.sizes().vec(),
          tensor.strides().vec(), tensor.storage_offset()};
}

// A tensor of the host's takes none of the device's memory.
bool counts(const at::Tensor& tensor) { return tensor.defined() && tensor.is_cuda(); }

}  // namespace

KernelCost cost_of(const Operator& op, const std::vector<c10::IValue>& arguments,
                   const std::vector<c10::IValue>& results) {
  std::deque<Layout> layouts;  // stay where they are
  std::optional<DType> computes_in;
  OpCall call{.name = op.label, .in = {}, .out = {}, .writes = {}};
  const auto& schema = op.op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isBool()) call.flags.set(schema[i].name(), arguments[i].toBool());
    if (arguments[i].isString()) call.flags.set(schema[i].name(), arguments[i].toStringRef());
    each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!counts(tensor)) return;
      if (op.writes[i]) call.writes.push_back(static_cast<std::uint32_t>(call.in.size()));
      call.in.push_back(&layouts.emplace_back(layout_of(tensor)));
      if (!computes_in && tensor.is_floating_point()) computes_in = layouts.back().dtype;
    });
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (op.returned_as[i]) continue;
    each_tensor(results[i], [&](const at::Tensor& tensor) {
      if (counts(tensor)) call.out.push_back(&layouts.emplace_back(layout_of(tensor)));
    });
  }
  const OpCosts costs = op_costs(call);
  return {.flops = costs.flops,
          .bytes = costs.read_bytes + costs.written_bytes,
          .computes_in = computes_in.value_or(DType::kF32),
          .kernels = costs.kernels,
          .products = costs.products,
          .op = op.label};
}

}  // namespace ferry::vgpu
