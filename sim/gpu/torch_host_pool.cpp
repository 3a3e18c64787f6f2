#include "sim/gpu/torch_host_pool.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>

namespace ferry::sim {
namespace {

std::size_t power_of(std::int64_t bytes) {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(bytes)));
}

}  // namespace

TorchHostPool::~TorchHostPool() {
  for (const Pending& pending : pending_) events_.drop(pending.token);
}

HostBlock TorchHostPool::allocate(std::int64_t bytes) {
  if (bytes < 0 || bytes > std::int64_t{1} << 62) {
    std::fprintf(stderr, "ferry::sim::TorchHostPool: a request must be a size\n");
    std::abort();
  }
  poll();
  const auto rounded = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))));
  std::vector<std::uint64_t>& cached = free_[power_of(rounded)];
  std::uint64_t address = 0;
  if (!cached.empty()) {
    address = cached.back();
    cached.pop_back();
  } else {
    if (!fits(rounded)) refuse(rounded);
    address = pin(rounded);
  }
  stats_.in_use_bytes.add(rounded);
  return {address, rounded, bytes};
}

void TorchHostPool::free(const HostBlock& block, std::span<const PoolToken> until) {
  stats_.in_use_bytes.add(-block.bytes);
  if (until.empty()) return free_[power_of(block.bytes)].push_back(block.address);
  copies_[block.address] = static_cast<std::int64_t>(until.size());
  for (const PoolToken token : until) pending_.push_back({token, block.address, block.bytes});
}

void TorchHostPool::poll() {
  while (!pending_.empty() && events_.done(pending_.front().token)) {
    const Pending done = pending_.front();
    pending_.pop_front();
    events_.drop(done.token);
    if (--copies_.at(done.address) > 0) continue;
    copies_.erase(done.address);
    free_[power_of(done.bytes)].push_back(done.address);
  }
}

}  // namespace ferry::sim
