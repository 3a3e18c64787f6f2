// The state of an offloader's host memory, as the oracles know it from the packs that they saw. The
// model of the offloader (accounts.h, way_back.h) consists of these structures.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/options.h"
#include "sim/gpu/tensor.h"
#include "verify/oracles/releases.h"

namespace ferry::verify {

struct WatchedSave;

// A copy on the host. It lives as long as a saved tensor needs it.
struct Parcel {
  // Why the bytes are on the device again: for further saves (held), or before their use
  // (prefetched).
  enum class Back : std::uint8_t { kNo, kAhead, kHeld, kHeldLarge };

  std::weak_ptr<sim::StorageImpl> source;
  std::uint64_t storage = 0;  // identity of the storage
  std::weak_ptr<sim::VersionCounter> counter;
  std::uint64_t counter_identity = 0;
  std::uint64_t version = 0;  // at the time of the pack
  Extent extent;
  std::uint64_t run = 0;
  std::uint64_t pack = 0;      // number of the pack in its forward
  std::uint64_t sequence = 0;  // number of the pack in the run
  std::uint64_t address = 0;   // of the source, at the time of the pack
  bool replaced = false;       // the source's memory was replaced during the copy
  std::uint64_t host = 0;      // address of the copy
  std::vector<const WatchedSave*> saves = {};
  std::optional<std::uint64_t> task = {};  // the latest task that unpacked one of the saves
  bool reloaded = false;
  bool ahead = false;  // reloaded and not used yet
  Back back = Back::kNo;
  TargetRef target = {};  // the reloaded storage

  std::int64_t bytes() const { return extent.end - extent.begin; }
  // Called while the parcel is being copied.
  void look_at_place() {
    const sim::Storage now = source.lock();
    replaced |= now && now->address != address;
  }
  // Returns true if the source exists and no longer has the memory that was copied.
  bool is_elsewhere() const {
    const sim::Storage now = source.lock();
    return now && (now->address != address || now->bytes < extent.end);
  }
};

// A saved tensor.
struct WatchedSave {
  std::uint64_t run = 0;
  std::uint64_t sequence = 0;              // number of its pack in the run
  std::shared_ptr<Parcel> parcel = {};     // null: the tensor was kept
  std::optional<std::uint64_t> task = {};  // the latest graph task that unpacked it
};

// Bytes on the host: now, the peak since the last forward began, and the peak in the forward before
// it.
struct HostBytes {
  std::int64_t now = 0;
  std::int64_t most = 0;
  std::int64_t most_before = 0;

  void add(std::int64_t bytes) {
    now += bytes;
    most = std::max(most, now);
  }
  void begin_forward() {
    most_before = most;
    most = now;
  }
  // Returns the effective limit. An automatic limit is a fraction of the recent peak.
  std::int64_t limit(std::int64_t bound) const {
    constexpr std::int64_t kMost = std::int64_t{512} << 20;
    if (bound != kAutomatic) return bound;
    return std::min(std::max(most, most_before) / 16, kMost);
  }
};

}  // namespace ferry::verify
