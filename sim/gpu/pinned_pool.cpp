#include "sim/gpu/pinned_pool.h"

#include <string>

#include "formats/error.h"
#include "formats/limits.h"

namespace ferry::sim {

OutOfHostMemory::OutOfHostMemory(std::int64_t requested, std::int64_t limit, std::int64_t in_use,
                                 std::int64_t pinned)
    : std::runtime_error("out of pinned host memory: tried to pin " + std::to_string(requested) +
                         " bytes; of a limit of " + std::to_string(limit) + " bytes " +
                         std::to_string(pinned) + " are pinned and " + std::to_string(in_use) +
                         " in use"),
      requested_bytes(requested),
      limit_bytes(limit),
      in_use_bytes(in_use),
      pinned_bytes(pinned) {}

std::uint64_t PinnedPool::pin(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  if (bytes > limits::kBytes - stats_.pinned_bytes.current) {
    throw LimitReached("the simulated host has addresses for 1 PiB of pinned memory, and " +
                       std::to_string(stats_.pinned_bytes.current) + " bytes are pinned");
  }
  const std::uint64_t address = next_address_;
  next_address_ += static_cast<std::uint64_t>((bytes + kPage - 1) / kPage * kPage);
  stats_.pinned_bytes.add(bytes);
  return address;
}

void PinnedPool::refuse(std::int64_t bytes) {
  ++stats_.num_ooms;
  throw OutOfHostMemory(bytes, limit_bytes_, stats_.in_use_bytes.current,
                        stats_.pinned_bytes.current);
}

void PinnedPool::reset_peaks() {
  stats_.in_use_bytes.peak = stats_.in_use_bytes.current;
  stats_.pinned_bytes.peak = stats_.pinned_bytes.current;
}

}  // namespace ferry::sim
