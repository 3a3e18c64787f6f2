#include "real/cuda/block_owners.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace ferry::real {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

struct DeviceBlocks {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, void*> stream;  // by address
};

// Never destroyed, because the allocator may report frees until the process ends.
std::vector<DeviceBlocks>& blocks() {
  static auto* const all =
      new std::vector<DeviceBlocks>(static_cast<std::size_t>(c10::cuda::device_count()));
  return *all;
}

void note(const allocator::TraceEntry& entry) {
  using Action = allocator::TraceEntry::Action;
  if (entry.action_ != Action::ALLOC && entry.action_ != Action::FREE_COMPLETED) return;
  DeviceBlocks& device = blocks()[static_cast<std::size_t>(entry.device_)];
  const std::lock_guard lock(device.mutex);
  if (entry.action_ == Action::ALLOC) {
    device.stream.insert_or_assign(entry.addr_, entry.stream_);
  } else {
    device.stream.erase(entry.addr_);
  }
}

}  // namespace

void follow_block_owners() {
  static const bool followed = [] {
    blocks();
    try {
      allocator::attachAllocatorTraceTracker(note);
    } catch (const c10::Error&) {
      return false;  // this allocator reports nothing
    }
    return true;
  }();
  static_cast<void>(followed);
}

std::optional<void*> block_owner(c10::DeviceIndex device, std::uint64_t address) {
  DeviceBlocks& known = blocks()[static_cast<std::size_t>(device)];
  const std::lock_guard lock(known.mutex);
  const auto found = known.stream.find(address);
  if (found == known.stream.end()) return std::nullopt;
  return found->second;
}

}  // namespace ferry::real
