// A parcel: the journey of one storage to the host and back.
//
// Storages are copied, not tensors: the bytes move without a shape, and each view is restored by
// its layout. A parcel lives as long as the saved tensors (OffloadCore::Save) that need it. The
// tracker and the tasks refer to it weakly, and the forward window drops it when its last save
// dies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/seam/device.h"
#include "shared/seam/invariant.h"

namespace ferry {

// Identifies a storage and its state. The version counter is part of the key, because two tensors
// may share a storage but not a counter (x and x.data).
struct ParcelKey {
  std::uint64_t storage = 0;
  std::uint64_t counter = 0;
  std::uint64_t version = 0;
  std::uint64_t address = 0;  // a storage may get other memory, which no counter counts
  bool operator==(const ParcelKey&) const = default;
};

// A reloaded storage. `storage` is the core's only reference to it. It is kept while its parcel
// holds it for a later save, while a node uses it, and until its release is due.
template <Device D>
struct Target {
  // A stream that uses the storage.
  struct Reader {
    typename D::Stream stream;
    std::optional<typename D::Event> done;  // follows the last node that used it; none if unknown
    int open = 0;                           // uses by nodes that are still running
  };
  enum class Role : std::uint8_t { kInUse, kPrefetched, kHeld };

  typename D::Storage storage;
  typename D::Event reloaded;
  typename D::Stream owner;   // the stream of its pool
  typename D::Stream copies;  // the stream that copied into it
  std::int64_t bytes = 0;
  std::vector<Reader> readers = {};
  Role role = Role::kInUse;  // why its parcel keeps it
  bool large = false;        // held although larger than the bound on held bytes
  bool kept_by_parcel = false;
  bool escaped = false;  // may be used after the end of its node

  Reader* reader(const typename D::Stream& stream) {
    for (Reader& reader : readers) {
      if (reader.stream == stream) return &reader;
    }
    return nullptr;
  }
  bool in_use() const {
    for (const Reader& reader : readers) {
      if (reader.open > 0) return true;
    }
    return false;
  }
};

template <Device D>
struct Parcel {
  // The storage to copy.
  ParcelKey key;
  std::uint64_t run = 0;
  std::uint64_t pack = 0;      // ordinal within its run
  std::uint64_t sequence = 0;  // order of packing over all runs
  typename D::WeakStorage source;
  typename D::Version version;
  std::uint64_t version_at_pack = 0;
  Extent extent;
  typename D::Stream packed_on;

  // The bytes on the host.
  typename D::HostBuffer host = {};
  typename D::Event offloaded = {};
  // The last reload on each stream. No event: the reload was enqueued, but its record failed.
  std::vector<std::pair<typename D::Stream, std::optional<typename D::Event>>> reloads = {};

  typename D::Storage kept = {};           // reference of the forward stash, until eviction
  std::int64_t kept_bytes = 0;             // bytes that the stash counts for it
  bool replaced = false;                   // the source got other memory during the copy
  std::shared_ptr<Target<D>> target = {};  // set while prefetched, handed out or held

  int saves = 0;
  GraphTaskId task = GraphTaskId::kNone;  // the task that unpacked one last
  bool ever_reloaded = false;
  // For each graph task: how many saves it was the last to unpack. A task that began inside another
  // one may alternate with it.
  std::vector<std::pair<GraphTaskId, int>> unpacked = {};

  // Returns how many saves the task has not unpacked yet.
  int pending(GraphTaskId of) const {
    for (const auto& [task_of, count] : unpacked) {
      if (task_of == of) return saves - count;
    }
    return saves;
  }

  void count_unpacked(GraphTaskId by, int change) {
    if (by == GraphTaskId::kNone) return;
    const auto known = std::find_if(unpacked.begin(), unpacked.end(),
                                    [by](const auto& each) { return each.first == by; });
    const int before = known == unpacked.end() ? 0 : known->second;
    invariant(before + change >= 0, "a task takes back no unpacking that it has not done");
    invariant(before + change <= saves, "a task unpacks no more saves of a parcel than it has");
    if (known == unpacked.end()) {
      unpacked.emplace_back(by, change);
    } else if ((known->second += change) == 0) {
      unpacked.erase(known);
    }
  }
};

}  // namespace ferry
