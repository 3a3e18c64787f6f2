// The tracker: finds the parcel of a storage that is already on its way, and remembers the order of
// packing.
//
// It is a weak index. A storage's identity is not reused while a parcel refers to it, so an entry
// cannot come to mean another storage; what must not happen is that one outlives its parcel.
// It also counts the storages that Ferry keeps alive itself, by identity: moving one is in vain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shared/parcel.h"

namespace ferry {

template <Device D>
class Tracker {
 public:
  using ParcelRef = std::shared_ptr<Parcel<D>>;

  void insert(const ParcelRef& parcel) {
    by_key_[parcel->key].push_back(parcel);
    by_sequence_.emplace(parcel->sequence, parcel);
  }

  void erase(const Parcel<D>& parcel) {
    by_sequence_.erase(parcel.sequence);
    const auto found = by_key_.find(parcel.key);
    if (found == by_key_.end()) return;
    std::erase_if(found->second, [&](const std::weak_ptr<Parcel<D>>& entry) {
      const ParcelRef other = entry.lock();
      return !other || other.get() == &parcel;
    });
    if (found->second.empty()) by_key_.erase(found);
  }

  // A parcel of that key that holds those bytes (any bytes, where `covers` is false), or none.
  ParcelRef find(const ParcelKey& key, const Extent& extent, bool covers = true) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    for (const auto& entry : found->second) {
      ParcelRef parcel = entry.lock();
      if (parcel && parcel->saves > 0 && (!covers || parcel->extent.covers(extent))) return parcel;
    }
    return nullptr;
  }

  // The parcel packed last before `sequence`, or none.
  ParcelRef older(std::uint64_t sequence) const {
    auto entry = by_sequence_.lower_bound(sequence);
    while (entry != by_sequence_.begin()) {
      --entry;
      if (ParcelRef parcel = entry->second.lock()) return parcel;
    }
    return nullptr;
  }

  void keep(std::uint64_t storage) { ++kept_[storage]; }
  void unkeep(std::uint64_t storage) {
    const auto found = kept_.find(storage);
    if (--found->second == 0) kept_.erase(found);
  }
  bool keeps(std::uint64_t storage) const { return kept_.contains(storage); }

  bool empty() const { return by_key_.empty() && by_sequence_.empty() && kept_.empty(); }
  std::size_t size() const { return by_sequence_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const ParcelKey& key) const {
      std::uint64_t hash = key.storage * 0x9E3779B97F4A7C15u;
      hash = (hash ^ key.counter) * 0xBF58476D1CE4E5B9u;
      hash = (hash ^ key.version) * 0x94D049BB133111EBu;
      return static_cast<std::size_t>(hash ^ (hash >> 31));
    }
  };

  // Found by key only, never walked: their order would be an address's.
  std::unordered_map<ParcelKey, std::vector<std::weak_ptr<Parcel<D>>>, Hash> by_key_;
  std::unordered_map<std::uint64_t, int> kept_;
  std::map<std::uint64_t, std::weak_ptr<Parcel<D>>> by_sequence_;
};

}  // namespace ferry
