// Options of the offloader.
//
// The defaults are Ferry's. trl_options() are the core's settings that come nearest to TRL's
// OffloadActivations (trl/models/activation_offloading.py); TRL's algorithm is sim/field/stash.h.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/seam/device.h"
#include "shared/seam/statistics.h"

namespace ferry {

inline constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
// A bound that adapts to the bytes offloaded (shared/offload/bounds.h).
inline constexpr std::int64_t kAutomatic = -1;

// Two: a lane to the host and a lane back. One: both directions share a stream. None: the copies
// run on the compute stream.
enum class CopyStreams : std::uint8_t { kTwo, kOne, kNone };

// The pool that a reloaded storage comes from. Consumer: the copy waits for the consumer's work so
// far, and a view may escape its node. CopyStream: the published way; the block is released by the
// reference-count rule, one node later.
enum class ReloadPool : std::uint8_t { kConsumer, kCopyStream };

// Recompute: `pack` is the segment's ordinal in its run.
enum class DecisionKind : std::uint8_t {
  kPack,
  kEvict,
  kPrefetch,
  kUnpack,
  kRelease,
  kReturn,
  kRecompute
};

// One line of the decision log: no times and no addresses, so both worlds write the same.
struct Decision {
  DecisionKind kind = DecisionKind::kPack;
  std::uint64_t run = 0;   // ordinal of the forward
  std::uint64_t pack = 0;  // ordinal of the pack within it, counting every pack
  std::int64_t bytes = 0;  // bytes offloaded; 0 if the tensor was kept
  bool operator==(const Decision&) const = default;
};

struct CoreOptions {
  HostMemory host_memory = HostMemory::kPinned;
  CopyStreams copy_streams = CopyStreams::kTwo;
  ReloadPool reload_pool = ReloadPool::kConsumer;
  // Tensors with fewer bytes to move are kept.
  std::int64_t min_bytes = 1024;
  // The forward window: a source stays on the device, whole, until this many further tensors were
  // packed (every pack counts, as in TRL), or until the window holds more bytes than this. This
  // bound and the two after it may be kAutomatic.
  std::int64_t window_tensors = kUnlimited;
  std::int64_t window_bytes = std::int64_t{512} << 20;
  // Bound on reloads begun before their use, along the reverse of packing; 0: none.
  std::int64_t prefetch_bytes = std::int64_t{512} << 20;
  // The backward window: while backward unpacks a tensor, no reload is begun early for what was
  // packed more than so many packs before it, and sources that the forward window still has from
  // before that, of any run, leave as at a pack. (What is held for further saves is hold_bytes'.)
  std::int64_t prefetch_tensors = kUnlimited;
  // Bound on reloaded storages kept for further saves of the same storage; one storage larger than
  // this is kept beside them. 0: each save reloads.
  std::int64_t hold_bytes = std::int64_t{512} << 20;
  // A tensor that the host side has no room for is kept. False: the error is thrown.
  bool keep_when_full = false;
  // Which packs of a run may move, by ordinal; empty: all. Past the end: kept.
  std::vector<bool> offload;
  // Warns once per offloader, at its first unpack, if it uses pinned memory and more than this
  // share of the host's memory is in use.
  std::int64_t host_warn_percent = 60;
  // Both are called outside the core's lock, on the thread that made the call; they must not throw.
  std::function<void(const std::string&)> warn;
  std::function<void(const Decision&)> log;
};

inline CoreOptions trl_options() {
  CoreOptions options;
  options.copy_streams = CopyStreams::kOne;
  options.reload_pool = ReloadPool::kCopyStream;
  options.window_tensors = 5;
  options.window_bytes = kUnlimited;
  options.prefetch_bytes = 0;
  options.hold_bytes = 0;
  return options;
}

inline void check_options(const CoreOptions& options) {
  const auto at_least = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) {
      throw std::invalid_argument(std::string(name) + " should be at least " +
                                  std::to_string(least) + " but is " + std::to_string(value));
    }
  };
  const auto bound = [&](const char* name, std::int64_t value) {
    if (value != kAutomatic) at_least(name, value, 0);
  };
  at_least("min_bytes", options.min_bytes, 0);
  at_least("window_tensors", options.window_tensors, 1);
  bound("window_bytes", options.window_bytes);
  bound("prefetch_bytes", options.prefetch_bytes);
  at_least("prefetch_tensors", options.prefetch_tensors, 0);
  bound("hold_bytes", options.hold_bytes);
  at_least("host_warn_percent", options.host_warn_percent, 0);
}

}  // namespace ferry
