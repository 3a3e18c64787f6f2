// What an offloader has on the host, as oracles know it from the packs that they saw.
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

// A copy on the host, as long as a saved tensor needs it.
struct Parcel {
  // Why the device has its bytes again: for further saves, or ahead of their use.
  enum class Back : std::uint8_t { kNo, kAhead, kHeld, kHeldLarge };

  std::weak_ptr<sim::StorageImpl> source;
  std::uint64_t storage = 0;  // its identity
  std::weak_ptr<sim::VersionCounter> counter;
  std::uint64_t counter_identity = 0;
  std::uint64_t version = 0;  // when it was packed
  Extent extent;
  std::uint64_t run = 0;
  std::uint64_t pack = 0;      // within its run
  std::uint64_t sequence = 0;  // of all packs
  std::uint64_t address = 0;   // of the source, when it was packed
  bool replaced = false;       // the source had other memory while it was copied
  std::uint64_t host = 0;      // where the copy lies
  std::vector<const WatchedSave*> saves = {};
  std::optional<std::uint64_t> task = {};  // the latest that unpacked one
  bool reloaded = false;
  bool ahead = false;  // reloaded, and nobody has used that yet
  Back back = Back::kNo;
  TargetRef target = {};  // where it is back

  std::int64_t bytes() const { return extent.end - extent.begin; }
  // While it is copied.
  void look_at_place() {
    const sim::Storage now = source.lock();
    replaced |= now && now->address != address;
  }
  // Whether the source is there, and has not the memory that was copied.
  bool is_elsewhere() const {
    const sim::Storage now = source.lock();
    return now && (now->address != address || now->bytes < extent.end);
  }
};

// A saved tensor.
struct WatchedSave {
  std::uint64_t run = 0;
  std::uint64_t sequence = 0;              // of its pack
  std::shared_ptr<Parcel> parcel = {};     // null: it was kept
  std::optional<std::uint64_t> task = {};  // the latest graph task that unpacked it
};

// Bytes on the host now, and the most in this forward (with what followed it) and the one before.
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
  // What a bound is now: of one that is automatic, the share of them that it stands for.
  std::int64_t limit(std::int64_t bound) const {
    constexpr std::int64_t kMost = std::int64_t{512} << 20;
    if (bound != kAutomatic) return bound;
    return std::min(std::max(most, most_before) / 16, kMost);
  }
};

}  // namespace ferry::verify
