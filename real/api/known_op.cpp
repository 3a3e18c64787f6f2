#include "real/api/known_op.h"

#include <algorithm>
#include <array>
#include <utility>

#include "real/tensors/torch_error.h"

namespace ferry::real {

std::string label(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  const std::size_t colons = name.find("::");
  if (colons == std::string_view::npos) return std::string(name);
  // This avoids replace(): at -O3 g++ 12 warns about an impossible copy.
  return std::string(name.substr(0, colons)) + "." + std::string(name.substr(colons + 2));
}

bool holds_tensors(const c10::Type& type) {
  if (type.kind() != c10::TypeKind::ListType && type.kind() != c10::TypeKind::OptionalType) {
    return type.kind() == c10::TypeKind::TensorType;
  }
  return std::ranges::any_of(type.containedTypes(),
                             [](const auto& inner) { return holds_tensors(*inner); });
}

bool is_empty(std::string_view op) {
  return op.starts_with("aten::empty") || op.starts_with("aten::new_empty");
}

bool can_keep(const c10::OperatorHandle& op) {
  if (!op.hasSchema()) return false;
  const c10::FunctionSchema& schema = op.schema();
  const auto& returns = schema.returns();
  return std::ranges::any_of(returns, [](const auto& r) { return holds_tensors(*r.type()); }) &&
         std::ranges::none_of(returns, [](const auto& r) { return r.alias_info() != nullptr; }) &&
         std::ranges::none_of(
             schema.arguments(),
             [](const auto& a) { return a.alias_info() && a.alias_info()->isWrite(); }) &&
         !is_empty(schema.name()) && !schema.name().starts_with("profiler::");
}

namespace {

[[noreturn]] void refuse(const std::string& op, const std::string& why) {
  throw torch_error(ValueError(
      "Expected op in `op_list` to be the name of an operator with its overload but got: " + op +
      ". " + why));
}

[[noreturn]] void refuse_unknown(const std::string& op) {
  std::string overloads;
  for (const c10::OperatorName& other : c10::Dispatcher::singleton().getAllOpNames()) {
    if (other.name == op) overloads += (overloads.empty() ? "`" : ", `") + toString(other) + "`";
  }
  if (overloads.empty()) refuse(op, "There is no such operator.");
  refuse(op, "Please name a specific overload of it: " + overloads + ".");
}

}  // namespace

std::string known_op(const std::string& op) {
  const std::size_t dot = op.find('.');
  std::string overload = dot == std::string::npos ? "" : op.substr(dot + 1);
  if (overload == "default") overload.clear();
  const auto handle =
      c10::Dispatcher::singleton().findSchema({op.substr(0, dot), std::move(overload)});
  if (!handle) refuse_unknown(op);
  if (!can_keep(*handle)) {
    refuse(op, "It writes an argument or computes no tensor of its own, and always runs again.");
  }
  // If a backend has no kernel of its own, autograd uses the composite one.
  using c10::DispatchKey;
  const auto has = [&](DispatchKey key) { return handle->hasKernelForDispatchKey(key); };
  if (has(DispatchKey::CompositeImplicitAutograd) &&
      std::ranges::none_of(std::array{DispatchKey::CPU, DispatchKey::CUDA, DispatchKey::AutogradCPU,
                                      DispatchKey::AutogradCUDA},
                           has)) {
    refuse(op, "It is made of other operators: name those (of `aten::linear`, `aten::addmm`).");
  }
  return toString(handle->operator_name());
}

}  // namespace ferry::real
