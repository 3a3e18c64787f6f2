#include "tests/real/sweep/calls.h"

#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ferry::sweep {
namespace {

using c10::IValue;

c10::TypePtr inner_of(const c10::Type& type) { return type.containedType(0); }

c10::impl::GenericList empty_list_of(const IValue& list) {
  return c10::impl::GenericList(list.toList().elementType());
}

}  // namespace

std::string name_of(const c10::OperatorHandle& op) { return c10::toString(op.operator_name()); }

IValue retyped(const IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
      return value.isNone() ? value : retyped(value, *inner_of(type));
    case c10::TypeKind::TensorType:
      return value.isNone() ? IValue(at::Tensor()) : value;
    case c10::TypeKind::ListType: {
      c10::impl::GenericList list(inner_of(type));
      for (const IValue& element : value.toListRef()) {
        list.push_back(retyped(element, *inner_of(type)));
      }
      return list;
    }
    case c10::TypeKind::FloatType:
      return value.isInt() ? IValue(static_cast<double>(value.toInt())) : value;
    default:
      return value;
  }
}

IValue with_tensors(const IValue& value, const Replace& replace) {
  if (value.isTensor()) return value.toTensor().defined() ? replace(value.toTensor()) : value;
  if (!value.isList()) return value;
  c10::impl::GenericList list = empty_list_of(value);
  for (const IValue& element : value.toListRef()) list.push_back(with_tensors(element, replace));
  return list;
}

std::vector<at::Tensor> tensors_in(c10::ArrayRef<IValue> values) {
  std::vector<at::Tensor> tensors;
  const Replace look = [&](const at::Tensor& tensor) { return tensors.emplace_back(tensor); };
  for (const IValue& value : values) with_tensors(value, look);
  return tensors;
}

Calls read_calls(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read; expected recorded calls");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Calls calls;
  const IValue recorded = torch::jit::pickle_load(bytes);
  for (const IValue& entry : recorded.toListRef()) {
    const auto& parts = entry.toTupleRef().elements();
    const c10::OperatorName name(parts.at(0).toStringRef(), parts.at(1).toStringRef());
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) throw std::runtime_error(path.string() + ": no operator " + c10::toString(name));
    Arguments arguments;
    const auto& schema = op->schema().arguments();
    for (const IValue& value : parts.at(2).toListRef()) {
      arguments.push_back(retyped(value, *schema.at(arguments.size()).type()));
    }
    calls[c10::toString(name)].push_back({*op, std::move(arguments)});
  }
  return calls;
}

}  // namespace ferry::sweep
