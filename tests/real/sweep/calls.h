// Calls of overloads, with their arguments: what recorder/ wrote down.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ferry::sweep {

using Arguments = std::vector<c10::IValue>;

struct Call {
  c10::OperatorHandle op;
  Arguments arguments;
};

// By overload ("aten::add.Tensor"), each one's in the order of the file.
using Calls = std::map<std::string, std::vector<Call>>;

// Throws std::runtime_error where the file is not there, or is none of these.
Calls read_calls(const std::filesystem::path& path);

std::string name_of(const c10::OperatorHandle& op);

// The value as this type has it: a list of its elements' type, an undefined tensor for none.
c10::IValue retyped(const c10::IValue& value, const c10::Type& type);

// The value, each of its tensors replaced.
using Replace = std::function<at::Tensor(const at::Tensor&)>;
c10::IValue with_tensors(const c10::IValue& value, const Replace& replace);

// The defined tensors within values, in order.
std::vector<at::Tensor> tensors_in(c10::ArrayRef<c10::IValue> values);

}  // namespace ferry::sweep
