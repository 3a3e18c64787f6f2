#include "vgpu/operators/operator.h"

#include <ATen/core/enum_tag.h>

namespace ferry::vgpu {
namespace {

bool has_tensors(const c10::TypePtr& type) {
  return type->isSubtypeOf(*c10::TensorType::get()) ||
         type->isSubtypeOf(*c10::ListType::ofTensors());
}

}  // namespace

Operator::Operator(const c10::OperatorHandle& handle) : op(handle) {
  const c10::FunctionSchema& schema = op.schema();
  name = toString(op.operator_name());
  way = find_way(name);
  arguments = schema.arguments().size();
  for (const c10::Argument& argument : schema.arguments()) {
    writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    outs.push_back(argument.is_out());
    const std::string type = argument.type()->str();
    draws = draws || type.starts_with("Generator");
  }
  draws = draws || way_draws(name);
  for (const c10::Argument& result : schema.returns()) {
    std::optional<std::size_t> same;
    for (std::size_t i = 0; i < arguments && result.alias_info() != nullptr; ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) same = i;
    }
    returned_as.push_back(same);
    makes_tensors = makes_tensors || (!same && has_tensors(result.type()));
    by_data = by_data || (!same && !has_tensors(result.type()));  // a number, for the host
  }
  by_data = by_data || op.hasTag(at::Tag::data_dependent_output);
  has_meta = way == nullptr && op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta);
}

bool Operator::can_compute() const {
  if (way != nullptr) return true;
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) return false;
  // It would draw from the CPU's own generator.
  return draws || !op.hasTag(at::Tag::nondeterministic_seeded);
}

}  // namespace ferry::vgpu
