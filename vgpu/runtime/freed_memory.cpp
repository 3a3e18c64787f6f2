#include "vgpu/runtime/freed_memory.h"

#include <sys/mman.h>

namespace ferry::vgpu {

void FreedMemory::add(void* address, std::size_t bytes, bool stays) {
  freed_.push_back({address, bytes, stays});
  if (streams_.queued() == 0) unmap();
}

void FreedMemory::unmap() {
  if (keepers_ > 0) return;
  constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  for (const auto& [address, bytes, stays] : freed_) {
    if (stays) {
      mmap(address, bytes, PROT_NONE, kReserved, -1, 0);
    } else {
      munmap(address, bytes);
    }
  }
  freed_.clear();
}

}  // namespace ferry::vgpu
