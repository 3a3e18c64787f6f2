// The set of CPU storages that were not filled (unfilled.h), or whose values depend on such a
// storage. unfilled.cpp adds storages to it and looks tensors up in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <cstddef>
#include <mutex>
#include <unordered_map>

namespace ferry::vgpu {

// Storages are found by their address and held weakly. A storage that has died does not count, even
// if another storage has its address now. Thread-safe.
class Unfilled {
 public:
  void add(const at::Tensor& tensor) {
    const c10::Storage& storage = tensor.storage();
    const std::lock_guard lock(mutex_);
    if (storages_.size() > 2 * alive_ + 64) drop_dead();
    storages_.insert_or_assign(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl());
  }

  bool has(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage()) return false;
    const std::lock_guard lock(mutex_);
    const auto found = storages_.find(tensor.storage().unsafeGetStorageImpl());
    return found != storages_.end() && !found->second.expired();
  }

  bool empty() {
    const std::lock_guard lock(mutex_);
    return storages_.empty();
  }

 private:
  void drop_dead() {
    std::erase_if(storages_, [](const auto& each) { return each.second.expired(); });
    alive_ = storages_.size();
  }

  std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
  std::size_t alive_ = 0;  // the number alive when the dead were last dropped
};

// The only one in the process. Never destroyed, because operators run until the process ends.
inline Unfilled& unfilled() {
  static auto* const all = new Unfilled;
  return *all;
}

}  // namespace ferry::vgpu
