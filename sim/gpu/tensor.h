// Storages, tensors and version counters of the simulated devices. They are like PyTorch's
// StorageImpl, TensorImpl and VariableVersion, but have no contents.
//
// A storage owns a block of a pool, and its last reference frees the block at once. A tensor is a
// window on a storage. Views share their base's version counter, which an in-place write
// increments.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "formats/stream_op.h"
#include "shared/seam/device.h"
#include "shared/seam/error.h"
#include "sim/gpu/device_pool.h"
#include "sim/gpu/memory_kind.h"

namespace ferry::sim {

class Machine;

// A layout, and the bytes of its storage that it touches.
struct Window {
  Layout layout;
  Extent extent;
};

struct StorageImpl {
  StorageImpl(Machine& owner, std::uint32_t on, Block* pool_block, std::int64_t size,
              std::uint64_t number, MemoryKind of, std::uint32_t made_at);
  StorageImpl(const StorageImpl&) = delete;
  StorageImpl& operator=(const StorageImpl&) = delete;
  ~StorageImpl();

  Machine* machine;
  std::uint32_t device;  // the device whose pool the block is from
  Block* block;
  std::int64_t bytes;
  std::uint64_t identity;  // never reused
  std::uint64_t address;
  MemoryKind kind;      // only Machine::set_kind changes it, because that counts
  std::uint32_t place;  // Machine::place() when it was made
};
using Storage = std::shared_ptr<StorageImpl>;

struct VersionCounter {
  std::uint64_t identity = 0;
  std::uint64_t value = 0;
};
using Version = std::shared_ptr<VersionCounter>;

// A window on a storage that begins at byte number `shift` of the original storage.
struct TensorLayout {
  std::shared_ptr<const Window> window;
  std::int64_t shift = 0;
  Extent extent() const { return {window->extent.begin - shift, window->extent.end - shift}; }
};

struct TensorImpl {
  Storage storage;
  TensorLayout layout;
  Version version;
  bool is_view = false;  // of a tensor that it keeps alive, as PyTorch's views do
};
// A handle, like a PyTorch tensor: its copies are the same tensor, and see it change.
using Tensor = std::shared_ptr<TensorImpl>;

inline Tensor make_tensor(Storage storage, TensorLayout layout, Version version) {
  Tensor tensor = std::make_shared<TensorImpl>();
  tensor->storage = std::move(storage);
  tensor->layout = std::move(layout);
  tensor->version = std::move(version);
  return tensor;
}

inline Range range_of(const Tensor& tensor) {
  const Extent extent = tensor->layout.extent();
  return {tensor->storage->address + static_cast<std::uint64_t>(extent.begin),
          static_cast<std::uint64_t>(extent.bytes())};
}

inline Range range_of(const Storage& storage) {
  return {storage->address, static_cast<std::uint64_t>(storage->bytes)};
}

}  // namespace ferry::sim

template <>
struct ferry::Exceptions<ferry::sim::Tensor> : ferry::Exceptions<void> {};
