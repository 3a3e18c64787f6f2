#include "vgpu/runtime/pinned_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace ferry::vgpu {
namespace {

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

void* PinnedMemory::allocate(std::size_t bytes) {
  void* const address = mmap(nullptr, pages(bytes), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  allocations_.emplace(number(address), Allocation{bytes});
  values_.add({number(address), bytes});
  peak_ = std::max(peak_, this->bytes());
  return address;
}

bool PinnedMemory::free(void* address) {
  const Allocation* const found = find_begin(address);
  if (found == nullptr) {
    freed_.count_wrong();
    return false;
  }
  const std::size_t bytes = found->bytes;
  if (values_.values() == KernelValues::kComputed) {
    std::memset(address, 0xdd, bytes);  // as if it had a new owner
  }
  values_.remove({number(address), bytes});
  allocations_.erase(number(address));
  freed_.add(address, pages(bytes), settings_.keeps_addresses);
  return true;
}

const Allocation* PinnedMemory::find_begin(const void* address) const {
  const auto found = allocations_.find(number(address));
  return found != allocations_.end() ? &found->second : nullptr;
}

std::int64_t PinnedMemory::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [address, each] : allocations_) bytes += static_cast<std::int64_t>(each.bytes);
  return bytes;
}

std::int64_t PinnedMemory::free_bytes() const {
  return std::max(settings_.pinned_bytes_max - bytes(), std::int64_t{0});
}

}  // namespace ferry::vgpu
