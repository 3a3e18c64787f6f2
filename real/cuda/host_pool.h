// Host memory for copies: blocks stay pinned when they are freed, and are reused.
//
// Pinning is slow, so a freed block is cached for the next request of its size. Sizes are rounded
// up to pages of 4 KiB, as in the simulator, and only an equal size is reused. (PyTorch's
// CachingHostAllocator rounds up to powers of two, and its one queue of frees waits for the
// oldest.)
//
//   allocate ── in use ── free(until) ── pending ── every event done ── idle ── allocate
//
// A block is freed together with the events of the copies that may still use it. It is not reused
// or unpinned before they are done. Each block is checked by itself; the one freed first comes
// first. So a hanging copy holds back no other block. If no block of the size is ready, new memory
// is pinned: an allocation does not wait for the device.
//
// An allocation waits only at the limit, or if the system has no more memory. Then it waits for
// pending blocks, reuses one of the size or gives others back to the system, and tries again. So it
// does not depend on the speed of copies whether the memory suffices. If it does not,
// OutOfHostMemory says how much there is.
//
// Idle and pending blocks are limited by `cached_bytes_max`, by default the most that was ever in
// use at once. Beyond it the blocks freed first are unpinned. Pageable memory uses the same rules
// with a limit of 0, because a copy may use it after the call too.
//
// Any thread may call. If CUDA returns an error, a block whose copy may still run is leaked and
// never reused. NUMA is not modelled.
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
  std::int64_t cached_bytes_max = -1;  // -1: the most that was ever in use
};

struct HostPoolStatistics {
  std::int64_t in_use_bytes = 0;
  std::int64_t in_use_peak_bytes = 0;
  std::int64_t cached_bytes = 0;  // idle or pending
  // Leaked: it is not known if their copies are done, or there was no memory to record the block.
  std::int64_t lost_bytes = 0;
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

  // Returns a block of at least one byte. Throws OutOfHostMemory, or CUDA's error.
  Block allocate(std::int64_t bytes);
  // `until` may contain null events, which are ignored.
  void free(Block block, std::span<const CudaSnapshotRef> until) noexcept;
  // Never reuses the block; counts it as lost.
  void lose(Block block) noexcept;
  // Gives blocks whose copies are done back to the system, until `cached_bytes` are left.
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
