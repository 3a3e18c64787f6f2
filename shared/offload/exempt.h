// The tensors that are never offloaded: parameters and buffers. They occupy device memory anyway.
//
// A tensor is recognised by its version counter, which it keeps when it gets another storage and
// shares with its views. It is also recognised by the storages that it had, because a tensor like
// x.data shares the storage but not the counter. Both references are weak, so they keep no bytes,
// and dead entries are removed. A lookup takes constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "shared/offload/context.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <Device D>
class Exempt {
 public:
  using Tensor = typename D::Tensor;
  using Storage = typename D::Storage;

  explicit Exempt(Context<D>& context) : device_(context.device) {}

  void add(const Tensor& tensor, Bin<D>& bin) {
    const typename D::Version version = device_.version(tensor);
    if (const std::uint64_t counter = device_.identity(version))
      counters_.emplace(counter, version);
    if (const Storage storage = device_.storage(tensor); device_.exists(storage)) learn(storage);
    if (size() > due_) forget_dead(bin);
  }

  // True if the tensor, which is on `storage`, is exempt or shares the storage of an exempt tensor.
  bool has(const Tensor& tensor, const Storage& storage, Bin<D>& bin) {
    if (size() == 0) return false;
    invariant(device_.exists(storage), "a tensor without a storage is not asked about");
    if (storages_.contains(device_.identity(storage))) return true;
    if (!counters_.contains(device_.identity(device_.version(tensor)))) return false;
    learn(storage);  // the exempt tensor got another storage
    if (size() > due_) forget_dead(bin);
    return true;
  }

  std::size_t size() const { return counters_.size() + storages_.size(); }

 private:
  void learn(const Storage& storage) {
    storages_.emplace(device_.identity(storage), device_.weak(storage));
  }

  // Runs whenever the table has doubled: so dead entries never outnumber living ones for long, and
  // the amortised cost is constant.
  void forget_dead(Bin<D>& bin) {
    constexpr std::size_t kFew = 64;
    std::erase_if(counters_, [&](const auto& entry) { return device_.unique(entry.second); });
    std::erase_if(storages_, [&](const auto& entry) {
      Storage storage = device_.lock(entry.second);
      if (!device_.exists(storage)) return true;
      bin.drop(std::move(storage));
      return false;
    });
    due_ = 2 * size() + kFew;
  }

  D& device_;
  // These are only looked up by key. Iteration would follow the order of addresses.
  std::unordered_map<std::uint64_t, typename D::Version> counters_;
  std::unordered_map<std::uint64_t, typename D::WeakStorage> storages_;
  std::size_t due_ = 0;
};

}  // namespace ferry
