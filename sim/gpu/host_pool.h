// Pinned host memory: buffers that stay pinned when freed, and are given out again.
//
// Pinning is slow, so a freed buffer is kept for the next request of its size: sizes are rounded up
// to whole pages of 4 KiB, and only an equal size is served (PyTorch rounds up to powers of two,
// which pins up to twice as much). A buffer is freed with the tokens of the copies that may still
// read or write it, and is not given out before they are done. Among equal sizes, the buffer freed
// longest ago is tried first, as it is likeliest to be done; unlike in PyTorch, an unfinished one
// does not hold back those behind it. If none is done, new memory is pinned: an allocation does not
// block.
//
// Only at the limit it does: before it fails it waits for pending buffers, one of the same size
// first, and unpins others, smallest size and oldest first. So whether the memory suffices does not
// depend on how fast the copies are.
//
// Invariants: buffers never overlap; addresses go up from 1 << 60 and are never used again.
// Not modelled: how long pinning takes, NUMA.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

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

class HostPool {
 public:
  // `events` is not owned and must outlive the pool. limit_bytes 0: unlimited.
  HostPool(std::int64_t limit_bytes, PoolEvents& events);
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool();  // drops the tokens that are still out

  // 0 bytes take a page. Throws OutOfHostMemory, and LimitReached above 1 PiB.
  HostBlock allocate(std::int64_t bytes);
  [[noreturn]] void refuse(std::int64_t bytes);  // fails as if memory was full
  // Takes ownership of the tokens: it drops each one.
  void free(const HostBlock& block, std::span<const PoolToken> until);

  const HostPoolStats& stats() const { return stats_; }
  void reset_peaks();

 private:
  struct Freed {
    std::uint64_t address;
    std::vector<PoolToken> until;
  };
  using FreedBySize = std::map<std::int64_t, std::deque<Freed>>;

  bool settled(Freed& freed);
  std::optional<std::uint64_t> reuse(std::int64_t bytes);
  std::optional<std::uint64_t> make_room(std::int64_t bytes);
  void wait_for(Freed& freed);

  std::int64_t limit_bytes_;
  PoolEvents& events_;
  std::uint64_t next_address_ = std::uint64_t{1} << 60;
  FreedBySize freed_;
  HostPoolStats stats_;
};

}  // namespace ferry::sim
