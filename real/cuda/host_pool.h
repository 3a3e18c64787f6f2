// Host memory for the copies: blocks that stay pinned when freed, and are given out again.
//
// Pinning is slow, so a freed block is kept for the next request of its size. Sizes are rounded up
// to whole pages of 4 KiB, as the simulator's are, and only an equal size is served. (PyTorch's
// CachingHostAllocator rounds up to powers of two, and its one queue of frees waits for the
// oldest.)
//
//   allocate ── in use ── free(until) ── pending ── every event done ── idle ── allocate
//
// A block is freed with the events of the copies that may still use it, and is not given out or
// unpinned before they are done. Blocks are judged one by one, the one freed longest ago first: one
// whose copy hangs holds back no other. Where none of the size is ready, new memory is pinned: an
// allocation does not wait for the device.
//
// Only at the limit, or where the system refuses, it does: it then waits for pending blocks, takes
// one of the size or gives others back to the system, and tries again; so whether memory suffices
// does not depend on how fast the copies are. Then OutOfHostMemory says how much there is.
//
// Idle and pending blocks are bounded: beyond `cached_bytes_max`, by default as much as was ever in
// use at once, the blocks freed longest ago are unpinned. A bound of 0 is for pageable memory,
// which is made by the same rules: a copy may use it after the call, too.
//
// Any thread may call. Where CUDA answers with an error, a block whose copy may still run is
// leaked, never given out. Not modelled: NUMA.
#pragma once

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "real/cuda/events.h"
#include "real/tensors/host_memory_error.h"
#include "shared/seam/device.h"

namespace ferry::real {

struct HostPoolOptions {
  HostMemory kind = HostMemory::kPinned;
  c10::DeviceIndex device = 0;  // the device whose context pins
  std::int64_t bytes_max = std::numeric_limits<std::int64_t>::max();
  std::int64_t cached_bytes_max = -1;  // -1: as much as was ever in use
};

struct HostPoolStatistics {
  std::int64_t in_use_bytes = 0;
  std::int64_t in_use_peak_bytes = 0;
  std::int64_t cached_bytes = 0;  // bytes idle or pending
  std::int64_t lost_bytes = 0;    // leaked: CUDA could not tell if their copies are done
  std::int64_t system_calls = 0;  // blocks requested from the system
  std::int64_t held_bytes() const { return in_use_bytes + cached_bytes + lost_bytes; }
};

class HostPool {
 public:
  struct Block {
    void* data = nullptr;
    std::int64_t bytes = 0;  // rounded up
  };

  explicit HostPool(const HostPoolOptions& options) : options_(options) {}
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool();  // waits for pending blocks

  // A block of at least one byte. Throws OutOfHostMemory, or CUDA's error.
  Block allocate(std::int64_t bytes);
  // Null events order nothing.
  void free(Block block, std::span<const CudaSnapshotRef> until) noexcept;
  // Never reuses the block; counts it as lost.
  void lose(Block block) noexcept;
  // Returns blocks that are not pending to the system, down to `cached_bytes`.
  void trim(std::int64_t cached_bytes = 0);

  HostPoolStatistics statistics() const;

 private:
  struct Freed {
    void* data = nullptr;
    std::vector<CudaSnapshotRef> until;
    std::uint64_t order = 0;
  };
  using FreedBySize = std::map<std::int64_t, std::list<Freed>>;

  static bool settled(Freed& freed);
  static void wait_for(Freed& freed);
  void* reuse(std::int64_t bytes);
  void* at_limit(std::int64_t bytes);
  void* from_system(std::int64_t bytes, std::string& cause);
  void to_system(FreedBySize::iterator size, std::list<Freed>::iterator freed) noexcept;
  bool unpin_oldest();
  void unpin_all();
  void shrink(std::int64_t cached_bytes);
  std::int64_t cached_bytes_max() const;
  OutOfHostMemory out_of_memory(std::int64_t bytes, const std::string& cause) const;

  const HostPoolOptions options_;
  mutable std::mutex mutex_;
  FreedBySize freed_;
  std::uint64_t frees_ = 0;
  HostPoolStatistics statistics_;
};

}  // namespace ferry::real
