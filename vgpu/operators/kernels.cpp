#include "vgpu/operators/kernels.h"

#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "vgpu/operators/extensions.h"
#include "vgpu/operators/host_views.h"
#include "vgpu/operators/operator.h"
#include "vgpu/operators/replacing.h"
#include "vgpu/operators/sparse.h"
#include "vgpu/operators/unfilled.h"
#include "vgpu/operators/values.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

// These compute nothing, or copy through the runtime, so LibTorch's own CUDA code runs.
constexpr std::array<std::string_view, 13> kKept = {
    "aten::empty.memory_format", "aten::empty_strided",
    "aten::_local_scalar_dense", "aten::set_",
    "aten::set_.source_Storage", "aten::set_.source_Storage_storage_offset",
    "aten::set_.source_Tensor",  "aten::resize_",
    "aten::record_stream",       "aten::is_set_to",
    "aten::_fused_sdp_choice",   "aten::is_pinned",
    "aten::_pin_memory"};

// LibTorch makes these of other operators that would reach cuDNN or a kernel, so they are replaced
// whole.
constexpr std::array<std::string_view, 3> kWhole = {"aten::convolution", "aten::copy_",
                                                    "aten::cudnn_is_acceptable"};

bool is_view(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const auto& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

bool contains(const auto& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns whether a GPU needs no kernel for this copy: one side is not on a GPU, or both are
// contiguous with the same shape, type and bits.
bool is_plain_copy(const at::Tensor& to, const at::Tensor& from) {
  if (!to.is_cuda() || !from.is_cuda()) return true;
  const bool rows = to.is_contiguous() && from.is_contiguous() && to.sizes() == from.sizes();
  return rows && to.dtype() == from.dtype() && to.is_conj() == from.is_conj() &&
         to.is_neg() == from.is_neg();
}

// Returns whether LibTorch's own code made the copy. Only contiguous bytes cross between devices.
bool copied(torch::jit::Stack* stack) {
  at::Tensor to = torch::jit::peek(*stack, 0, 3).toTensor();
  const at::Tensor from = torch::jit::peek(*stack, 1, 3).toTensor();
  const bool non_blocking = torch::jit::peek(*stack, 2, 3).toBool();
  require_known_to_copy(to, from);
  const WaitsForCopies waits(!non_blocking);
  if (is_plain_copy(to, from)) {
    at::native::copy_(to, from, non_blocking);
  } else if (to.device() != from.device()) {
    const at::Tensor row = from.to(to.scalar_type()).expand(to.sizes()).contiguous();
    at::Tensor arrived = at::empty_like(row, row.options().device(to.device()));
    at::native::copy_(arrived, row.resolve_conj().resolve_neg(), non_blocking);
    to.copy_(arrived);
  } else {
    return false;
  }
  if (to.is_cuda() && is_unfilled(from)) note_unknown(bytes_of(to));
  torch::jit::drop(*stack, 3);
  stack->emplace_back(to);
  return true;
}

// These are made of calls to the process group.
bool is_composed(const std::string& name) { return name.starts_with("c10d::"); }

void install(Installed& installed) {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& full : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(full);
    const std::string name = toString(full);
    if (!op) continue;
    if (!op->hasKernelForDispatchKey(c10::DispatchKey::CUDA) && !contains(kWhole, name)) continue;
    if (contains(kKept, name) || is_composed(name) || makes_sparse(name) || is_view(op->schema())) {
      ++installed.kept;
      continue;
    }
    const bool computes = Operator(*op).can_compute();
    ++(computes ? installed.computed : installed.refused);
    // The text is what torch._C._dispatch_dump shows for the operator.
    replace_kernel(*op, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(*op))
                            .debug(computes ? "computed by Ferry" : "refused by Ferry"));
  }
}

}  // namespace

void Kernel::operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const AtPlace at_place;
  // It must not be a NotImplementedError: libraries take that for another operator's error, or as a
  // hint to try something else.
  TORCH_CHECK(operator_.can_compute(), "the virtual GPU does not compute ", operator_.name);
  meet_extensions();
  if (operator_.name == "aten::copy_" && copied(stack)) return;
  run_queued(operator_, stack);
}

const Installed& install_kernels() {
  static const Installed installed = [] {
    Installed counts;
    install(counts);
    install_sparse_kernels(counts);
    if (values() != KernelValues::kComputed) {
      watch_numbers();
      leave_unfilled();
    }
    return counts;
  }();
  return installed;
}

}  // namespace ferry::vgpu
