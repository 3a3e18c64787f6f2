#include "vgpu/operators/operator.h"

#include <ATen/core/enum_tag.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "formats/op_costs.h"

namespace ferry::vgpu {
namespace {

// The shapes of its results depend on data, but PyTorch does not tag it so.
constexpr std::string_view kByData = "aten::_unique";
// The CPU's kernels of these return other shapes than Meta's, and read the results in backward.
constexpr std::array<std::string_view, 2> kShapesOfCpu = {"aten::_embedding_bag",
                                                          "aten::_embedding_bag_forward_only"};

// LibTorch's fallback for Meta only fails, and does not count for an extension.
bool has_fake(const c10::OperatorHandle& op, bool extension) {
  return extension ? op.hasKernelForDispatchKey(c10::DispatchKey::Meta)
                   : op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta);
}

bool has_tensors(const c10::TypePtr& type) {
  return type->isSubtypeOf(*c10::TensorType::get()) ||
         type->isSubtypeOf(*c10::ListType::ofTensors());
}

}  // namespace

Operator::Operator(const c10::OperatorHandle& handle, Computing computing)
    : op(handle), by(std::move(computing)) {
  const c10::FunctionSchema& schema = op.schema();
  name = toString(op.operator_name());
  const bool extension = !name.starts_with("aten::") || by.stand_in;
  way = by.stand_in ? nullptr : find_way(name);
  arguments = schema.arguments().size();
  for (const c10::Argument& argument : schema.arguments()) {
    writes.push_back(argument.alias_info() != nullptr && argument.alias_info()->isWrite());
    outs.push_back(!extension && argument.is_out());
    const std::string type = argument.type()->str();
    draws = draws || type.starts_with("Generator");
  }
  draws = draws || way_draws(name);
  label = schema.name();
  label.replace(label.find("::"), 2, ".");
  overwrites = ferry::overwrites(label);
  for (const c10::Argument& result : schema.returns()) {
    std::optional<std::size_t> same;
    for (std::size_t i = 0; i < arguments && result.alias_info() != nullptr; ++i) {
      const auto* const alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && *alias == *result.alias_info()) same = i;
    }
    returned_as.push_back(same);
    // The host reads a result that is a number, so it depends on data. Only numbers that a `Way`
    // (ways.h) returns do not: they follow from the shapes of the arguments.
    const bool tensors = has_tensors(result.type());
    makes_tensors = makes_tensors || (!same && (tensors || way != nullptr));
    by_data = by_data || (!same && !tensors && way == nullptr);
    returns_view =
        returns_view || (result.alias_info() != nullptr && !result.alias_info()->isWrite());
  }
  by_data = by_data || op.hasTag(at::Tag::data_dependent_output) || name == kByData;
  may_be_by_data = op.hasTag(at::Tag::dynamic_output_shape);
  const bool as_cpu =
      !extension && std::find(kShapesOfCpu.begin(), kShapesOfCpu.end(), name) != kShapesOfCpu.end();
  has_meta = (way == nullptr || way_has_metas_shapes(name)) && !as_cpu && has_fake(op, extension);
  // Only a fake implementation says that the results of an extension's operator do not depend on
  // data, and it may fail to. One that mutates its arguments alone has no shapes to find.
  by_data = by_data || (extension && makes_tensors && !has_meta);
  may_be_by_data = may_be_by_data || extension;
}

bool Operator::can_compute() const {
  if (way != nullptr || by.stand_in) return true;
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU)) return false;
  // One of LibTorch's would draw from the CPU's own generator.
  return draws || !name.starts_with("aten::") || !op.hasTag(at::Tag::nondeterministic_seeded);
}

}  // namespace ferry::vgpu
