// The host pool under random use: whatever is allocated, freed under copies and waited for, no
// block is given out that a copy may still use, and none overlaps another.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "real/cuda/host_pool.h"
#include "tests/real/cuda/world.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kPageBytes = 4096;

class Player {
 public:
  explicit Player(std::int64_t limit, std::int64_t cached)
      : pool_({.bytes_max = limit, .cached_bytes_max = cached}), limit_(limit) {}

  void allocate(std::int64_t bytes) {
    HostPool::Block block;
    try {
      block = pool_.allocate(bytes);
    } catch (const OutOfHostMemory&) {
      const std::int64_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
      RC_ASSERT(in_use() + rounded > limit_);
      return;
    }
    RC_ASSERT(block.bytes >= bytes && block.bytes < bytes + kPageBytes &&
              block.bytes % kPageBytes == 0);
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data);
    const auto end = begin + static_cast<std::uintptr_t>(block.bytes);
    for (const HostPool::Block& other : used_) {
      const auto start = reinterpret_cast<std::uintptr_t>(other.data);
      RC_ASSERT(end <= start || start + static_cast<std::uintptr_t>(other.bytes) <= begin);
    }
    // The copies that read or wrote these bytes in an earlier life are done.
    for (const auto& [address, event] : copies_) {
      if (address >= begin && address < end) RC_ASSERT(event->done());
    }
    used_.push_back(block);
  }

  void free(std::size_t which, const std::vector<int>& streams) {
    if (used_.empty()) return;
    const HostPool::Block block = used_[which % used_.size()];
    used_.erase(used_.begin() + static_cast<std::ptrdiff_t>(which % used_.size()));
    std::vector<CudaSnapshotRef> until;
    for (const int stream : streams) {
      VirtualWorld::set_current(world_.stream(stream));
      world_.work();
      until.push_back(events_->record(world_.stream(stream)));
      copies_.emplace(reinterpret_cast<std::uintptr_t>(block.data), until.back());
    }
    pool_.free(block, until);
  }

  void wait(int stream) {
    C10_CUDA_CHECK(cudaStreamSynchronize(c10::cuda::CUDAStream(world_.stream(stream)).stream()));
  }
  void trim() { pool_.trim(); }

  void check() {
    const HostPoolStatistics statistics = pool_.statistics();
    RC_ASSERT(statistics.in_use_bytes == in_use());
    RC_ASSERT(statistics.held_bytes() <= limit_);
    RC_ASSERT(statistics.held_bytes() == vgpu::counts().pinned_bytes - before_);
  }
  void end() {
    while (!used_.empty()) free(0, {});
    world_.finish();
    pool_.trim();
    RC_ASSERT(pool_.statistics().held_bytes() == 0);
    RC_ASSERT(world_.hazards().empty());
  }

 private:
  std::int64_t in_use() const {
    std::int64_t bytes = 0;
    for (const HostPool::Block& block : used_) bytes += block.bytes;
    return bytes;
  }

  VirtualWorld world_{vgpu::Tempo::kLazy};
  const std::int64_t before_ = vgpu::counts().pinned_bytes;
  std::shared_ptr<CudaEvents> events_ = std::make_shared<CudaEvents>(0, /*timed=*/false);
  HostPool pool_;
  const std::int64_t limit_;
  std::vector<HostPool::Block> used_;
  std::multimap<std::uintptr_t, CudaSnapshotRef> copies_;
};

// Of the whole range at every size.
int below(int bound) { return *rc::gen::resize(100, rc::gen::inRange(0, bound)); }

RC_GTEST_PROP(HostPoolProperty, NothingIsGivenOutUnderACopy, ()) {
  Player player(kPageBytes * (4 + below(60)), below(3) == 0 ? -1 : kPageBytes * below(20));
  const int calls = 1 + below(120);
  for (int i = 0; i < calls; ++i) {
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        player.allocate(1 + below(3) * kPageBytes + below(2) * (kPageBytes - 1));
        break;
      case 3:
      case 4:
      case 5: {
        const std::vector<std::vector<int>> streams = {{}, {0}, {1}, {0, 1}};
        player.free(static_cast<std::size_t>(below(100)),
                    streams[static_cast<std::size_t>(below(4))]);
        break;
      }
      case 6:
        player.wait(below(2));
        break;
      default:
        if (below(4) == 0) player.trim();
    }
    player.check();
  }
  player.end();
}

}  // namespace
}  // namespace ferry::real
