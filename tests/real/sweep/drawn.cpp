#include "tests/real/sweep/drawn.h"

#include <ATen/ATen.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tests/real/sweep/overloads.h"

namespace ferry::sweep {
namespace {

using c10::IValue;
using c10::TypeKind;

enum class Kind { kFloats, kWhole, kSparse, kSparseRows };

// What is simple, by the number of the try.
struct Simple {
  Kind kind;
  std::vector<std::int64_t> sizes;
  std::int64_t number;
  std::size_t length;  // of lists of numbers
};

std::vector<Simple> simple() {
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 3},       {3, 3},    {4},
                                                         {2, 3, 4, 4}, {2, 3, 4}, {}};
  std::vector<Simple> all;
  const auto add = [&](Kind kind, std::size_t shapes_max) {
    for (std::size_t i = 0; i < shapes_max; ++i) {
      for (const std::int64_t number : {1, 0, 2}) {
        for (const std::size_t length : {1, 2}) all.push_back({kind, shapes[i], number, length});
      }
    }
  };
  add(Kind::kFloats, shapes.size());
  add(Kind::kWhole, 3);
  add(Kind::kSparse, 2);
  add(Kind::kSparseRows, 2);
  return all;
}

bool is_index(const std::string& name) {
  static const std::set<std::string> names = {"index",   "indices",     "target",     "offsets",
                                              "lengths", "batch_sizes", "other_index"};
  return names.contains(name);
}

// Between 1/8 and 7/8: a probability, and positive.
at::Tensor some_tensor(const Simple& simple, const std::string& name) {
  if (is_index(name)) return at::zeros(simple.sizes, at::kLong);
  std::int64_t count = 1;
  for (const std::int64_t size : simple.sizes) count *= size;
  const at::Tensor whole = (at::arange(count).remainder(7) + 1).reshape(simple.sizes);
  if (simple.kind == Kind::kWhole) return whole;
  const at::Tensor values = whole.to(at::kFloat) / 8;
  if (simple.kind == Kind::kSparse) return values.to_sparse();
  if (simple.kind == Kind::kSparseRows) return values.to_sparse_csr();
  return values;
}

IValue made(const c10::Type& type, const std::string& name, const Simple& simple) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return some_tensor(simple, name);
    case TypeKind::OptionalType:
      return {};
    case TypeKind::ListType: {
      c10::impl::GenericList list(type.containedType(0));
      const bool tensors = type.containedType(0)->kind() == TypeKind::TensorType;
      for (std::size_t i = 0; i < (tensors ? 2 : simple.length); ++i) {
        list.push_back(made(*type.containedType(0), name, simple));
      }
      return list;
    }
    case TypeKind::FloatType:
      return 0.5;
    case TypeKind::BoolType:
      return false;
    case TypeKind::StringType:
      return "mean";
    case TypeKind::DeviceObjType:
      return c10::Device(c10::kCPU);
    default:
      return simple.number;
  }
}

bool fits(const IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::TensorType:
      return value.isTensor() && value.toTensor().defined();
    case TypeKind::OptionalType:
      return value.isNone() || fits(value, *type.containedType(0));
    case TypeKind::ListType: {
      if (!value.isList()) return false;
      for (const IValue& element : value.toListRef()) {
        if (!fits(element, *type.containedType(0))) return false;
      }
      return true;
    }
    case TypeKind::FloatType:
      return value.isDouble();
    case TypeKind::BoolType:
      return value.isBool();
    case TypeKind::StringType:
      return value.isString();
    case TypeKind::IntType:
      return value.isInt();
    case TypeKind::NumberType:
      return value.isScalar();
    default:
      return false;
  }
}

// "aten::add" of "aten::add_.Tensor", and of "aten::add_copy".
std::string stem(const c10::OperatorHandle& op) {
  std::string_view name = op.schema().name();
  for (const std::string_view end : {"_functional", "_copy", "_"}) {
    if (name.ends_with(end)) name.remove_suffix(end.size());
  }
  return std::string(name);
}

std::optional<IValue> of_sibling(const Call& sibling, const c10::Argument& wanted) {
  const auto& arguments = sibling.op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == wanted.name() && fits(sibling.arguments[i], *wanted.type())) {
      return retyped(sibling.arguments[i], *wanted.type());
    }
  }
  return std::nullopt;
}

Call call_like(const c10::OperatorHandle& op, const Call* sibling, const Simple& simple) {
  Call call{op, {}};
  for (const c10::Argument& argument : op.schema().arguments()) {
    auto known = sibling ? of_sibling(*sibling, argument) : std::nullopt;
    if (!known) known = argument.default_value();
    call.arguments.push_back(retyped(
        known ? *known : made(*argument.type(), argument.name(), simple), *argument.type()));
  }
  return call;
}

}  // namespace

std::vector<Call> draw(const c10::OperatorHandle& op, const Calls& recorded) {
  if (takes_names(op)) return {};
  std::vector<Call> found;
  const auto simples = simple();
  for (const auto& [name, calls] : recorded) {
    if (stem(calls.front().op) != stem(op)) continue;
    for (const Call& call : calls) found.push_back(call_like(op, &call, simples.front()));
  }
  for (const Simple& simple : simples) found.push_back(call_like(op, nullptr, simple));
  return found;
}

}  // namespace ferry::sweep
