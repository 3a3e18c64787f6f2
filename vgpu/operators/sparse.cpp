#include "vgpu/operators/sparse.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/boxing/OperatorKernel.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "vgpu/operators/host_views.h"
#include "vgpu/operators/operator.h"
#include "vgpu/operators/shapes.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

using c10::DispatchKey;
using c10::IValue;

// Operators of sparse tensors that need a CUDA kernel. According to native_functions.yaml of
// PyTorch 2.11, they call another function for CUDA than for the CPU, or one that calls such a
// kernel (masks).
constexpr std::array<std::string_view, 20> kCoo = {"aten::_coalesce",
                                                   "aten::_sparse_log_softmax",
                                                   "aten::_sparse_log_softmax_backward_data",
                                                   "aten::_sparse_mask_projection",
                                                   "aten::_sparse_softmax",
                                                   "aten::_sparse_softmax_backward_data",
                                                   "aten::_sparse_sparse_matmul",
                                                   "aten::_sparse_sum_backward",
                                                   "aten::add.out",
                                                   "aten::addmm",
                                                   "aten::addmm.out",
                                                   "aten::addmm_",
                                                   "aten::bmm",
                                                   "aten::bmm.out",
                                                   "aten::hspmm",
                                                   "aten::hspmm.out",
                                                   "aten::index_select",
                                                   "aten::mul.out",
                                                   "aten::sparse_mask",
                                                   "aten::sspaddmm.out"};
constexpr std::array<std::string_view, 8> kCompressed = {"aten::_sparse_csr_prod.dim_dtype",
                                                         "aten::_sparse_csr_sum.dim_dtype",
                                                         "aten::add.out",
                                                         "aten::addmm.out",
                                                         "aten::addmv.out",
                                                         "aten::sparse_sampled_addmm",
                                                         "aten::sparse_sampled_addmm.out",
                                                         "aten::triangular_solve.X"};
constexpr std::array<std::string_view, 7> kComposed = {
    "aten::_to_sparse",     "aten::_to_sparse.sparse_dim", "aten::_to_sparse_bsc",
    "aten::_to_sparse_bsr", "aten::_to_sparse_csc",        "aten::_to_sparse_csr",
    "aten::sparse_mask"};

// The kernel for an operator that computes on the host.
class HostKernel final : public c10::OperatorKernel {
 public:
  explicit HostKernel(const c10::OperatorHandle& handle) : operator_(handle) {}

  void operator()(const c10::OperatorHandle& handle, c10::DispatchKeySet,
                  torch::jit::Stack* stack) {
    const AtPlace at_place;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const Values arguments = torch::jit::last(*stack, operator_.arguments).vec();
    torch::jit::drop(*stack, operator_.arguments);
    std::optional<c10::Device> device;
    Values host;
    for (const IValue& argument : arguments) {
      host.push_back(map_tensors(argument, [&](const at::Tensor& tensor) {
        if (tensor.is_cuda()) device = tensor.device();
        return tensor.cpu();
      }));
    }
    for (const IValue& argument : on_device(operator_, host, c10::kCPU)) stack->push_back(argument);
    handle.callBoxed(stack);
    const std::size_t count = operator_.returned_as.size();
    const Values made = torch::jit::last(*stack, count).vec();
    torch::jit::drop(*stack, count);
    for (std::size_t i = 0; i < count; ++i) {
      stack->push_back(result(made[i], operator_.returned_as[i], arguments, *device));
    }
  }

 private:
  static IValue result(const IValue& made, std::optional<std::size_t> same, const Values& arguments,
                       c10::Device device) {
    if (!same) {
      return map_tensors(made, [&](const at::Tensor& tensor) { return tensor.to(device); });
    }
    const at::Tensor written = arguments[*same].toTensor();
    const at::Tensor values = made.toTensor().to(device);
    if (written.layout() == at::kStrided) {
      written.resize_(values.sizes());
    } else if (written.layout() != at::kSparse) {
      written.resize_as_sparse_(values);
    }
    written.copy_(values);
    return written;
  }

  const Operator operator_;
};

void install(DispatchKey key, std::span<const std::string_view> names, Installed& installed) {
  // Never destroyed, because operators run until the process ends.
  auto* const library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  for (const std::string_view name : names) {
    const std::size_t dot = name.find('.');
    const std::string overload(dot == name.npos ? "" : name.substr(dot + 1));
    const auto op =
        c10::Dispatcher::singleton().findSchema({std::string(name.substr(0, dot)), overload});
    if (!op) continue;
    ++installed.computed;
    library->impl(std::string(name).c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<HostKernel>(*op)));
  }
}

}  // namespace

bool makes_sparse(const std::string& name) {
  return std::find(kComposed.begin(), kComposed.end(), name) != kComposed.end();
}

void install_sparse_kernels(Installed& installed) {
  install(DispatchKey::SparseCUDA, kCoo, installed);
  install(DispatchKey::SparseCsrCUDA, kCompressed, installed);
}

}  // namespace ferry::vgpu
