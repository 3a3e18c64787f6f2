// Ferry's pool of pinned host memory. Freed buffers stay pinned, and are reused.
//
// Pinning is slow, so a freed buffer is kept for the next request of its size. Sizes are rounded up
// to whole pages of 4 KiB, and a buffer serves only equal sizes. (PyTorch's pool,
// torch_host_pool.h, rounds up to powers of two, which pins up to twice as much.) Among equal
// sizes, the buffer that was freed first is tried first, because it is the likeliest to be done.
// Unlike in PyTorch, an unfinished one does not hold back those behind it. If none is done, new
// memory is pinned, so an allocation does not block.
//
// It blocks only at the limit. Before it fails, it waits for pending buffers, one of the same size
// first, and unpins others, smallest size and oldest first. So whether the memory suffices does not
// depend on how fast the copies are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sim/gpu/pinned_pool.h"

namespace ferry::sim {

class HostPool final : public PinnedPool {
 public:
  HostPool(std::int64_t limit_bytes, PoolEvents& events) : PinnedPool(limit_bytes, events) {}
  ~HostPool() override;

  HostBlock allocate(std::int64_t bytes) override;  // 0 bytes take a page
  void free(const HostBlock& block, std::span<const PoolToken> until) override;

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

  FreedBySize freed_;
};

}  // namespace ferry::sim
