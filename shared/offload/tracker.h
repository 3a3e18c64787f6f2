// Finds the parcel of a storage that is already being copied, and remembers the order of packing.
//
// The references are weak. An identity is not reused while a parcel refers to its storage, so an
// entry cannot come to mean another storage; but it must not outlive its parcel. The tracker also
// counts, by identity, the storages that Ferry itself keeps alive: to offload one would free
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "shared/offload/parcel.h"
#include "shared/seam/invariant.h"

namespace ferry {

template <Device D>
class Tracker {
 public:
  using ParcelRef = std::shared_ptr<Parcel<D>>;

  void insert(const ParcelRef& parcel) {
    try {
      const bool is_new = by_key_[parcel->key].emplace(place(*parcel), parcel).second;
      invariant(is_new, "a parcel is tracked once");
      const bool is_alone = by_sequence_.emplace(parcel->sequence, parcel).second;
      invariant(is_alone, "no two parcels have one place in the order of packing");
    } catch (...) {
      erase(*parcel);
      throw;
    }
  }

  void erase(const Parcel<D>& parcel) {
    by_sequence_.erase(parcel.sequence);
    const auto found = by_key_.find(parcel.key);
    if (found == by_key_.end()) return;
    found->second.erase(place(parcel));
    if (found->second.empty()) by_key_.erase(found);
  }

  // Returns a parcel with this key that has these bytes, or null. It looks at the parcels that
  // begin where the bytes begin, at the last one that begins before them, and at those that begin
  // at 0. Other parcels may have the bytes too; then they are copied again.
  ParcelRef find(const ParcelKey& key, const Extent& extent) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    const Parts& parts = found->second;
    const auto serves = [&](const auto& part) -> ParcelRef {
      ParcelRef parcel = part->second.lock();
      if (!parcel || parcel->saves == 0) return nullptr;
      invariant(parcel->key == key, "a tracked parcel stands for the storage that it was sent for");
      return parcel->extent.covers(extent) ? parcel : nullptr;
    };
    const auto here = parts.lower_bound({extent.begin, 0});
    if (here != parts.begin()) {
      if (ParcelRef parcel = serves(std::prev(here))) return parcel;
    }
    for (const std::int64_t begin : {extent.begin, std::int64_t{0}}) {
      for (auto part = parts.lower_bound({begin, 0});
           part != parts.end() && part->first.first == begin; ++part) {
        if (ParcelRef parcel = serves(part)) return parcel;
      }
    }
    return nullptr;
  }

  // Returns the last parcel that was packed before `sequence`, or null.
  ParcelRef older(std::uint64_t sequence) const {
    auto entry = by_sequence_.lower_bound(sequence);
    while (entry != by_sequence_.begin()) {
      --entry;
      ParcelRef parcel = entry->second.lock();
      if (!parcel) continue;
      invariant(parcel->sequence == entry->first,
                "a tracked parcel keeps its place in the order of packing");
      return parcel;
    }
    return nullptr;
  }

  void keep(std::uint64_t storage) { ++kept_[storage]; }
  void unkeep(std::uint64_t storage) {
    const auto found = kept_.find(storage);
    invariant(found != kept_.end(), "a storage that is let go was counted as kept");
    if (--found->second == 0) kept_.erase(found);
  }
  bool keeps(std::uint64_t storage) const { return kept_.contains(storage); }

  bool empty() const { return by_key_.empty() && by_sequence_.empty() && kept_.empty(); }
  std::size_t size() const { return by_sequence_.size(); }

 private:
  // The parcels of one key, by the offset of their first byte.
  using Place = std::pair<std::int64_t, std::uint64_t>;
  using Parts = std::map<Place, std::weak_ptr<Parcel<D>>>;
  static Place place(const Parcel<D>& parcel) { return {parcel.extent.begin, parcel.sequence}; }

  struct Hash {
    std::size_t operator()(const ParcelKey& key) const {
      std::uint64_t hash = key.storage * 0x9E3779B97F4A7C15u;
      hash = (hash ^ key.counter) * 0xBF58476D1CE4E5B9u;
      hash = (hash ^ key.version) * 0x94D049BB133111EBu;
      hash = (hash ^ key.address) * 0xD6E8FEB86659FD93u;
      return static_cast<std::size_t>(hash ^ (hash >> 31));
    }
  };

  // It is only looked up by key. Iteration would follow the order of addresses.
  std::unordered_map<ParcelKey, Parts, Hash> by_key_;
  std::unordered_map<std::uint64_t, int> kept_;
  std::map<std::uint64_t, std::weak_ptr<Parcel<D>>> by_sequence_;
};

}  // namespace ferry
