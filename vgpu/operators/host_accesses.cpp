#include "vgpu/operators/host_accesses.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vgpu/operators/host_views.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

// These have a kernel on the CPU that touches no element.
constexpr std::array<std::string_view, 6> kWithoutBytes = {
    "aten::set_",      "aten::resize_",     "aten::is_set_to",
    "aten::is_pinned", "aten::_pin_memory", "aten::record_stream"};

bool is_pinned_on_cpu(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.layout() != at::kStrided) return false;
  if (!tensor.has_storage() || tensor.numel() == 0) return false;
  const Range bytes = bytes_of(tensor);
  return is_pinned(reinterpret_cast<const void*>(bytes.address), bytes.bytes);
}

bool has_pinned(c10::ArrayRef<const c10::IValue> inputs) {
  bool found = false;
  for (const c10::IValue& value : inputs) {
    each_tensor(value,
                [&](const at::Tensor& tensor) { found = found || is_pinned_on_cpu(tensor); });
  }
  return found;
}

bool has_cuda(c10::ArrayRef<const c10::IValue> inputs) {
  bool found = false;
  for (const c10::IValue& value : inputs) {
    each_tensor(value, [&](const at::Tensor& tensor) { found = found || tensor.is_cuda(); });
  }
  return found;
}

bool touches_bytes(const c10::OperatorHandle& op, bool cuda) {
  const std::string& name = op.operator_name().name;
  const auto* const none = std::find(kWithoutBytes.begin(), kWithoutBytes.end(), name);
  if (none != kWithoutBytes.end()) return false;
  for (const c10::Argument& result : op.schema().returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return false;  // a view
  }
  if (name == "aten::copy_") return !cuda;  // with CUDA the stream copies
  return op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
}

std::unique_ptr<at::ObserverContext> begins(const at::RecordFunction& function) {
  const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
  const auto name = function.operator_name();
  if (!name || !has_pinned(inputs)) return nullptr;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op || !touches_bytes(*op, has_cuda(inputs))) return nullptr;
  const AtPlace at_place;
  const std::vector<c10::Argument>& arguments = op->schema().arguments();
  for (std::size_t i = 0; i < inputs.size() && i < arguments.size(); ++i) {
    const auto* const alias = arguments[i].alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!is_pinned_on_cpu(tensor)) return;
      note_host_access(writes, bytes_of(tensor), toString(*name).c_str());
    });
  }
  return nullptr;
}

}  // namespace

void watch_host_accesses() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(begins).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

}  // namespace ferry::vgpu
