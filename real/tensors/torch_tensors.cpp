#include "real/tensors/torch_tensors.h"

#include <c10/core/ScalarType.h>
#include <c10/core/impl/COW.h>

#include <cstring>
#include <sstream>
#include <typeinfo>

namespace ferry::real {

bool TorchTensors::plain(const Tensor& tensor) {
  if (!tensor.defined()) return false;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  constexpr c10::DispatchKeySet kLazy({c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
                                       c10::DispatchKey::ZeroTensor, c10::DispatchKey::Python});
  // A subclass of TensorImpl holds more than a view expresses.
  return typeid(impl) == typeid(c10::TensorImpl) && !impl.key_set().has_any(kLazy) &&
         tensor.has_storage() && !impl.has_symbolic_sizes_strides() &&
         !c10::impl::cow::is_cow_data_ptr(impl.unsafe_storage().data_ptr());
}

TorchLayout TorchTensors::layout(const Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  TorchLayout layout;
  layout.window.set_sizes(impl.sizes());
  layout.window.set_strides(impl.strides());
  layout.offset = impl.storage_offset();
  layout.dtype = impl.dtype();
  layout.keys = impl.key_set();
  return layout;
}

Extent TorchTensors::extent(const Layout& layout) {
  const std::int64_t item = layout.item_bytes();
  std::int64_t last = layout.offset;
  for (std::size_t i = 0; i < layout.window.size(); ++i) {
    const std::int64_t size = layout.window.size_at(i);
    if (size == 0) return {layout.offset * item, layout.offset * item};
    last += (size - 1) * layout.window.stride_at(i);
  }
  return {layout.offset * item, (last + 1) * item};
}

std::uint64_t TorchTensors::identity(const Version& version) {
  // The counter is private, but the handle is just a pointer to it.
  static_assert(sizeof(Version) == sizeof(void*));
  std::uint64_t address = 0;
  std::memcpy(&address, static_cast<const void*>(&version), sizeof address);
  return version.enabled() ? address : 0;
}

TorchTensors::Metadata TorchTensors::metadata(const Tensor& tensor) {
  // A nested tensor has no such shape.
  return {tensor.is_nested() ? c10::DimVector() : c10::DimVector(tensor.sizes()), tensor.dtype(),
          tensor.device()};
}

std::string TorchTensors::describe(const Metadata& metadata) {
  std::ostringstream text;
  text << "shape " << c10::IntArrayRef(metadata.shape) << ", dtype "
       << c10::toString(c10::typeMetaToScalarType(metadata.dtype)) << ", device "
       << metadata.device;
  return text.str();
}

at::Tensor TorchTensors::detach(const Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  return Tensor(impl.shallow_copy_and_detach(impl.version_counter(),
                                             /*allow_tensor_metadata_change=*/false));
}

at::Tensor TorchTensors::restore(const Storage& storage, const Layout& layout, std::int64_t begin,
                                 const Version& version) {
  auto impl = c10::make_intrusive<c10::TensorImpl>(Storage(storage), layout.keys, layout.dtype);
  impl->set_sizes_and_strides(layout.window.sizes_arrayref(), layout.window.strides_arrayref(),
                              layout.offset - begin / layout.item_bytes());
  impl->set_version_counter(version);
  return Tensor(std::move(impl));
}

}  // namespace ferry::real
