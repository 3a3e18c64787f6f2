#include "vgpu/operators/host_views.h"

#include <ATen/Functions.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>

namespace ferry::vgpu {
namespace {

void copy_bits(const at::Tensor& from, const at::Tensor& to) {
  to.unsafeGetTensorImpl()->_set_conj(from.is_conj());
  to.unsafeGetTensorImpl()->_set_neg(from.is_neg());
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
}

c10::Storage same_bytes(const c10::Storage& device) {
  void* const data = const_cast<void*>(device.data());
  return {c10::Storage::use_byte_size_t(), device.nbytes(), c10::DataPtr(data, c10::kCPU)};
}

}  // namespace

std::int64_t elements_spanned(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    last += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return last + 1;
}

at::Tensor stand_in(const at::Tensor& tensor, c10::DeviceType type) {
  // A Meta kernel in Python accepts a wrapped number only if it is on the CPU.
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) type = c10::kCPU;
  const auto options = at::device(type).dtype(tensor.dtype());
  at::Tensor made = type == c10::kCPU
                        ? at::zeros({elements_spanned(tensor)}, options)
                              .as_strided(tensor.sizes(), tensor.strides())
                        : at::empty_strided(tensor.sizes(), tensor.strides(), options);
  copy_bits(tensor, made);
  return made;
}

at::Tensor HostViews::of(const at::Tensor& tensor) {
  at::Tensor& view = views_[tensor.unsafeGetTensorImpl()];
  if (view.defined()) return view;
  if (!tensor.is_cuda()) {
    view = tensor.clone();
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      view.unsafeGetTensorImpl()->set_wrapped_number(true);
    }
    return view;
  }
  const c10::Storage& device = tensor.storage();
  c10::Storage& host = storages_[device.unsafeGetStorageImpl()];
  if (!host) host = same_bytes(device);
  view = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(host), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  copy_bits(tensor, view);
  return view;
}

Range bytes_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return {};
  const auto size = static_cast<std::uint64_t>(tensor.itemsize());
  return {reinterpret_cast<std::uint64_t>(tensor.storage().data()) +
              static_cast<std::uint64_t>(tensor.storage_offset()) * size,
          static_cast<std::uint64_t>(elements_spanned(tensor)) * size};
}

}  // namespace ferry::vgpu
