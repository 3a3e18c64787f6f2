// The calls of a device that concern tensors and storages. They are the same for every device of
// LibTorch.
//
// A storage is a c10::Storage. Its identity is the address of its StorageImpl; a weak reference
// prevents the reuse of that address. A version is autograd's own counter.
//
// Only a plain strided tensor whose storage holds its bytes can be copied. Everything else is not
// `plain`: sparse, nested, quantised, functorch's wrappers, lazy conjugates, copy-on-write
// storages. A device reports such a tensor as not its own, and the core keeps it unchanged.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/SizesAndStrides.h>
#include <c10/util/DimVector.h>

#include <cstdint>
#include <string>

#include "real/tensors/torch_error.h"
#include "shared/seam/device.h"

namespace ferry::real {

// Everything needed to make a tensor with the same view and of the same kind.
struct TorchLayout {
  c10::impl::SizesAndStrides window;  // in elements
  std::int64_t offset = 0;            // in elements, from the start of the storage
  caffe2::TypeMeta dtype;
  c10::DispatchKeySet keys;

  std::int64_t item_bytes() const { return static_cast<std::int64_t>(dtype.itemsize()); }
};

class TorchTensors {
 public:
  using Storage = c10::Storage;
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  using Tensor = at::Tensor;
  using Layout = TorchLayout;
  using Version = c10::VariableVersion;

  // Returns an empty storage if the tensor has none.
  static Storage storage(const Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage() : Storage();
  }
  static std::int64_t bytes(const Storage& storage) {
    return storage ? static_cast<std::int64_t>(storage.nbytes()) : 0;
  }
  static std::int64_t use_count(const Storage& storage) {
    return static_cast<std::int64_t>(storage.use_count());
  }
  static std::uint64_t identity(const Storage& storage) {
    return reinterpret_cast<std::uint64_t>(storage.unsafeGetStorageImpl());
  }
  static std::uint64_t address(const Storage& storage) {
    return reinterpret_cast<std::uint64_t>(storage.data());
  }
  static WeakStorage weak(const Storage& storage) { return storage.getWeakStorageImpl(); }
  static Storage lock(const WeakStorage& storage) { return Storage(storage.lock()); }
  static bool exists(const Storage& storage) { return static_cast<bool>(storage); }

  static bool plain(const Tensor& tensor);
  static bool dense(const Tensor& tensor) { return tensor.is_non_overlapping_and_dense(); }

  static Layout layout(const Tensor& tensor);
  static Extent extent(const Layout& layout);

  static Version version(const Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->version_counter();
  }
  static std::uint64_t read(const Version& version) {
    return version.enabled() ? version.current_version() : 0;
  }
  static std::uint64_t identity(const Version& version);
  static bool unique(const Version& version) { return version.unique(); }

  // Shape, dtype and device.
  struct Metadata {
    c10::DimVector shape;
    caffe2::TypeMeta dtype;
    c10::Device device = c10::kCPU;
    bool operator==(const Metadata&) const = default;
  };
  static Metadata metadata(const Tensor& tensor);
  static std::string describe(const Metadata& metadata);

  static Tensor detach(const Tensor& tensor);
  static Tensor restore(const Storage& storage, const Layout& layout, std::int64_t begin,
                        const Version& version);
};

}  // namespace ferry::real
