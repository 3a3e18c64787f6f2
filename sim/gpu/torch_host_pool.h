// PyTorch's pool of pinned host memory, for the policies that simulate another library's offloading
// (offload-all, checkpoint-offload-all). Ferry's own pool is host_pool.h.
//
// Models ATen/core/CachingHostAllocator.h (2.11) with default options. Sizes are rounded up to
// powers of two, without a minimum. Of equal sizes, the buffer that came back last is reused first.
// A buffer that is freed while copies use it waits in one queue for all streams. Each request goes
// through this queue from its front to the first copy that is not done, so one slow copy holds back
// all buffers behind it. Memory is never given back: if no more can be pinned, the pool fails.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "sim/gpu/pinned_pool.h"

namespace ferry::sim {

class TorchHostPool final : public PinnedPool {
 public:
  TorchHostPool(std::int64_t limit_bytes, PoolEvents& events) : PinnedPool(limit_bytes, events) {}
  ~TorchHostPool() override;

  HostBlock allocate(std::int64_t bytes) override;  // 0 bytes take one byte
  void free(const HostBlock& block, std::span<const PoolToken> until) override;

 private:
  struct Pending {
    PoolToken token;
    std::uint64_t address;
    std::int64_t bytes;
  };

  void poll();

  std::array<std::vector<std::uint64_t>, 64> free_;  // addresses, by the power of two
  std::deque<Pending> pending_;
  std::map<std::uint64_t, std::int64_t> copies_;  // how many a buffer still waits for
};

}  // namespace ferry::sim
