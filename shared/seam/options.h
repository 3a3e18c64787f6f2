// Options of the offloader.
//
// The defaults are Ferry's. trl_options() returns the options that come closest to TRL's
// OffloadActivations (trl/models/activation_offloading.py). sim/field/stash.h implements TRL's
// algorithm itself.
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
// The bound follows the bytes that are offloaded (shared/offload/bounds.h).
inline constexpr std::int64_t kAutomatic = -1;

// kTwo has a stream for each direction, kOne has one stream for both. With kNone the copies run on
// the compute stream.
enum class CopyStreams : std::uint8_t { kTwo, kOne, kNone };

// The pool from which a reload allocates. With kConsumer the copy waits for the earlier work of the
// consumer, and a view may outlive its node. kCopyStream is TRL's published way: reference counts
// decide when the block is released, one node later.
enum class ReloadPool : std::uint8_t { kConsumer, kCopyStream };

// In a kRecompute decision, `pack` is the number of the segment in its run.
enum class DecisionKind : std::uint8_t {
  kPack,
  kEvict,
  kPrefetch,
  kUnpack,
  kRelease,
  kReturn,
  kRecompute
};

// One line of the decision log. It has no times and no addresses, so both worlds write the same
// log.
struct Decision {
  DecisionKind kind = DecisionKind::kPack;
  std::uint64_t run = 0;   // number of the forward
  std::uint64_t pack = 0;  // number of the pack in its forward, counting every pack
  std::int64_t bytes = 0;  // bytes offloaded; 0 if the tensor was kept
  bool operator==(const Decision&) const = default;
};

struct CoreOptions {
  HostMemory host_memory = HostMemory::kPinned;
  CopyStreams copy_streams = CopyStreams::kTwo;
  ReloadPool reload_pool = ReloadPool::kConsumer;
  // Tensors with fewer bytes are kept.
  std::int64_t min_bytes = 1024;
  // The forward window. A source stays on the device, whole, until `window_tensors` further tensors
  // were packed (every pack counts, as in TRL), or until the window holds more than `window_bytes`.
  // `window_bytes`, `prefetch_bytes` and `hold_bytes` may be kAutomatic.
  std::int64_t window_tensors = kUnlimited;
  std::int64_t window_bytes = std::int64_t{512} << 20;
  // The most bytes to prefetch. Prefetch goes in the reverse order of packing. 0: no prefetch.
  std::int64_t prefetch_bytes = std::int64_t{512} << 20;
  // The backward window. While backward unpacks a tensor, nothing is prefetched that was packed
  // more than `prefetch_tensors` packs before it, and sources of any run that were packed before
  // that leave the forward window. It does not limit what is held for further saves; hold_bytes
  // does.
  std::int64_t prefetch_tensors = kUnlimited;
  // The most bytes of reloaded storages that are held for further saves of the same storage. One
  // storage larger than this is held besides. 0: nothing is held, each save reloads.
  std::int64_t hold_bytes = std::int64_t{512} << 20;
  // If the host has no room for a tensor, it is kept. If false, the error is thrown.
  bool keep_when_full = false;
  // True for each pack of a run that may be offloaded, by its ordinal. Packs past the end are kept.
  // Empty: all packs may.
  std::vector<bool> offload;
  // The offloader warns once, at its first unpack, if it uses pinned memory and more than this
  // percentage of the host's memory is in use.
  std::int64_t host_warn_percent = 60;
  // `warn` and `log` are called without the core's lock, on the thread that called the core. They
  // must not throw.
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
