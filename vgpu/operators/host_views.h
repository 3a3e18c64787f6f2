// Views of CUDA tensors as CPU tensors on the same bytes, with which CPU kernels compute in device
// memory (run.cpp), and helpers for values that contain tensors.
//
// A view owns nothing and holds no reference to the device's storage. So the allocator reuses a
// block exactly when it would on a GPU, and a view that is read too late shows what is there by
// then. Tensors that share a storage have views that share one.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu {

// Returns the value with each defined tensor in it replaced.
template <class Map>
c10::IValue map_tensors(const c10::IValue& value, Map&& map) {
  const auto mapped = [&](const at::Tensor& tensor) {
    return tensor.defined() ? map(tensor) : tensor;
  };
  if (value.isTensor()) return mapped(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(mapped(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      list.push_back(tensor ? std::optional(mapped(*tensor)) : std::nullopt);
    }
    return list;
  }
  return value;
}

template <class Visit>
void each_tensor(const c10::IValue& value, Visit&& visit) {
  map_tensors(value, [&](const at::Tensor& tensor) {
    visit(tensor);
    return tensor;
  });
}

// Returns a tensor of another device type with the same shape, strides, type and bits (conjugate,
// negative, a wrapped number). It has bytes of its own: none on Meta, zeros on the CPU. A wrapped
// number is always on the CPU.
at::Tensor stand_in(const at::Tensor& tensor, c10::DeviceType type);

class HostViews {
 public:
  // Returns the view of a CUDA tensor, or a copy of a CPU tensor.
  at::Tensor of(const at::Tensor& tensor);

 private:
  std::map<const c10::StorageImpl*, c10::Storage> storages_;
  std::map<const c10::TensorImpl*, at::Tensor> views_;
};

// The number of elements from a strided tensor's first element to its last, including gaps.
std::int64_t elements_spanned(const at::Tensor& tensor);

// The bytes in which a strided CUDA tensor lies, including gaps between its elements.
Range bytes_of(const at::Tensor& tensor);

}  // namespace ferry::vgpu
