// PyTorch's pool of pinned host memory, for what uses it.
//
// Models ATen/core/CachingHostAllocator.h (2.11) with default options: sizes are rounded up to
// powers of two, without a least one; of equal sizes, the buffer that came back last is given out
// first. A buffer that is freed under copies waits in one queue for all streams, which is looked
// through at each request from its front to the first copy that is not done: one slow copy holds
// back all buffers behind it. Nothing is given back: where nothing more can be pinned, it fails.
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

  HostBlock allocate(std::int64_t bytes) override;  // 0 bytes take one
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
  std::map<std::uint64_t, std::int64_t> copies_;  // that a buffer still waits for
};

}  // namespace ferry::sim
