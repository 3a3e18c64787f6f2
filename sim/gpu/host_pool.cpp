#include "sim/gpu/host_pool.h"

#include <cstdio>
#include <cstdlib>

namespace ferry::sim {
namespace {

constexpr std::int64_t kPage = 4096;

}  // namespace

HostPool::~HostPool() {
  for (const auto& [bytes, queue] : freed_) {
    for (const Freed& freed : queue) {
      for (const PoolToken token : freed.until) events_.drop(token);
    }
  }
}

HostBlock HostPool::allocate(std::int64_t bytes) {
  if (bytes < 0) {
    std::fprintf(stderr, "ferry::sim::HostPool: a request must not be negative\n");
    std::abort();
  }
  const std::int64_t rounded = bytes == 0 ? kPage : (bytes + kPage - 1) / kPage * kPage;
  std::optional<std::uint64_t> address = reuse(rounded);
  if (!address) address = make_room(rounded);
  if (!address) address = pin(rounded);
  stats_.in_use_bytes.add(rounded);
  return {*address, rounded, bytes};
}

void HostPool::free(const HostBlock& block, std::span<const PoolToken> until) {
  freed_[block.bytes].push_back({block.address, {until.begin(), until.end()}});
  stats_.in_use_bytes.add(-block.bytes);
}

bool HostPool::settled(Freed& freed) {
  while (!freed.until.empty() && events_.done(freed.until.back())) {
    events_.drop(freed.until.back());
    freed.until.pop_back();
  }
  return freed.until.empty();
}

void HostPool::wait_for(Freed& freed) {
  for (const PoolToken token : freed.until) {
    events_.wait(token);
    events_.drop(token);
  }
  freed.until.clear();
}

std::optional<std::uint64_t> HostPool::reuse(std::int64_t bytes) {
  const auto same_size = freed_.find(bytes);
  if (same_size == freed_.end()) return std::nullopt;
  std::deque<Freed>& queue = same_size->second;
  for (auto it = queue.begin(); it != queue.end(); ++it) {
    if (!settled(*it)) continue;
    const std::uint64_t address = it->address;
    queue.erase(it);
    return address;
  }
  return std::nullopt;
}

// If new memory would pass the limit: returns a buffer of this size, or else unpins others.
std::optional<std::uint64_t> HostPool::make_room(std::int64_t bytes) {
  if (fits(bytes)) return std::nullopt;
  std::deque<Freed>& same_size = freed_[bytes];
  if (!same_size.empty()) {
    wait_for(same_size.front());
    const std::uint64_t address = same_size.front().address;
    same_size.pop_front();
    return address;
  }
  for (auto& [size, queue] : freed_) {
    for (; !queue.empty() && !fits(bytes); queue.pop_front()) {
      wait_for(queue.front());
      stats_.pinned_bytes.add(-size);
    }
  }
  if (fits(bytes)) return std::nullopt;
  refuse(bytes);
}

}  // namespace ferry::sim
