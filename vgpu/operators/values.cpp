#include "vgpu/operators/values.h"

#include <ATen/ops/_local_scalar_dense_native.h>
#include <torch/library.h>

#include <algorithm>

#include "vgpu/operators/host_views.h"
#include "vgpu/runtime/control.h"

namespace ferry::vgpu {
namespace {

bool is_refused(const at::Tensor& tensor) {
  return values() == KernelValues::kRefused && !is_known(bytes_of(tensor));
}

at::Scalar number_of(const at::Tensor& tensor) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_refused(tensor),
                              "the program reads a number of a CUDA tensor (item, bool, float) "
                              "that is not computed (--no-values): with --zeros it is 0");
  return at::native::_local_scalar_dense_cuda(tensor);
}

}  // namespace

void require_known(const std::string& name, const std::vector<Range>& reads) {
  const bool known = std::all_of(reads.begin(), reads.end(), is_known);
  TORCH_CHECK_NOT_IMPLEMENTED(known, name,
                              " depends on values that are not computed (--no-values)");
}

void require_known_to_copy(const at::Tensor& to, const at::Tensor& from) {
  const bool is_read = to.is_cpu() && from.is_cuda() && !to.is_pinned();
  TORCH_CHECK_NOT_IMPLEMENTED(
      !is_read || !is_refused(from),
      "the program copies a CUDA tensor that is not computed (--no-values) to memory that is not "
      "page-locked: with --zeros it is 0");
}

void watch_numbers() {
  static auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  library->impl("_local_scalar_dense", number_of);
}

}  // namespace ferry::vgpu
