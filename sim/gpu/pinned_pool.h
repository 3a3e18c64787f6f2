// The base class of pools of pinned host memory.
//
// A freed buffer comes back with the tokens of the copies that may still read or write it, and is
// not reused before they are done. Buffers never overlap. Addresses go up from 1 << 60, and no
// other buffer uses them again. Not modelled: how long pinning takes, NUMA.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "formats/stream_op.h"
#include "shared/seam/host_full.h"
#include "sim/gpu/pool_events.h"

namespace ferry::sim {

struct OutOfHostMemory : std::runtime_error, HostFull {
  OutOfHostMemory(std::int64_t requested, std::int64_t limit, std::int64_t in_use,
                  std::int64_t pinned);
  std::int64_t requested_bytes;
  std::int64_t limit_bytes;
  std::int64_t in_use_bytes;
  std::int64_t pinned_bytes;
};

struct HostBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  // rounded up
  std::int64_t requested_bytes = 0;
  Range range() const { return {address, static_cast<std::uint64_t>(bytes)}; }
};

struct HostPoolStats {
  Gauge in_use_bytes;
  Gauge pinned_bytes;
  std::int64_t num_ooms = 0;
};

class PinnedPool {
 public:
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  virtual ~PinnedPool() = default;  // drops the tokens that it still has

  // Throws OutOfHostMemory, and LimitReached above 1 PiB.
  virtual HostBlock allocate(std::int64_t bytes) = 0;
  // Takes ownership of the tokens: it drops each one.
  virtual void free(const HostBlock& block, std::span<const PoolToken> until) = 0;
  [[noreturn]] void refuse(std::int64_t bytes);  // fails as if memory was full

  const HostPoolStats& stats() const { return stats_; }
  void reset_peaks();

 protected:
  // `events` is not owned and must outlive the pool. limit_bytes 0: unlimited.
  PinnedPool(std::int64_t limit_bytes, PoolEvents& events)
      : limit_bytes_(limit_bytes), events_(events) {}

  bool fits(std::int64_t bytes) const {
    return limit_bytes_ == 0 || stats_.pinned_bytes.current + bytes <= limit_bytes_;
  }
  std::uint64_t pin(std::int64_t bytes);  // returns the address

  std::int64_t limit_bytes_;
  PoolEvents& events_;
  HostPoolStats stats_;

 private:
  std::uint64_t next_address_ = std::uint64_t{1} << 60;
};

}  // namespace ferry::sim
