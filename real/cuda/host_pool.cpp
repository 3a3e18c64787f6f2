#include "real/cuda/host_pool.h"

#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "real/tensors/torch_error.h"

namespace ferry::real {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t round_up(std::int64_t bytes) {
  if (bytes < 1 || bytes > std::numeric_limits<std::int64_t>::max() - kPage) {
    throw std::invalid_argument("host memory: " + std::to_string(bytes) + " bytes");
  }
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

HostPool::~HostPool() {
  for (auto size = freed_.begin(); size != freed_.end(); ++size) {
    while (!size->second.empty()) {
      const auto freed = size->second.begin();
      try {
        wait_for(*freed);
        to_system(size, freed);
      } catch (...) {
        size->second.erase(freed);  // leaked: a copy may still run, or CUDA has ended
      }
    }
  }
}

HostPool::Block HostPool::allocate(std::int64_t bytes) {
  const std::int64_t rounded = round_up(bytes);
  const std::lock_guard lock(mutex_);
  void* data = reuse(rounded);
  if (data == nullptr) data = at_limit(rounded);
  std::string cause;
  if (data == nullptr) data = from_system(rounded, cause);
  if (data == nullptr) {
    unpin_all();
    data = from_system(rounded, cause);
  }
  if (data == nullptr) throw torch_error(out_of_memory(rounded, cause));
  statistics_.in_use_bytes += rounded;
  statistics_.in_use_peak_bytes = std::max(statistics_.in_use_peak_bytes, statistics_.in_use_bytes);
  shrink(cached_bytes_max());
  return {data, rounded};
}

void HostPool::free(Block block, std::span<const CudaSnapshotRef> until) noexcept {
  if (block.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  statistics_.in_use_bytes -= block.bytes;
  try {
    Freed freed{block.data, {}, ++frees_};
    for (const CudaSnapshotRef& event : until) {
      if (event) freed.until.push_back(event);
    }
    freed_[block.bytes].push_back(std::move(freed));
  } catch (...) {
    statistics_.lost_bytes += block.bytes;  // no memory to record it
    return;
  }
  statistics_.cached_bytes += block.bytes;
  try {
    shrink(cached_bytes_max());
  } catch (...) {
    // The block stays as it is. The next allocation reports the error.
  }
}

void HostPool::lose(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  statistics_.in_use_bytes -= block.bytes;
  statistics_.lost_bytes += block.bytes;
}

void HostPool::trim(std::int64_t cached_bytes) {
  const std::lock_guard lock(mutex_);
  shrink(cached_bytes);
}

HostPoolStatistics HostPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

bool HostPool::settled(Freed& freed) {
  while (!freed.until.empty() && freed.until.back()->done()) freed.until.pop_back();
  return freed.until.empty();
}

void HostPool::wait_for(Freed& freed) {
  for (const CudaSnapshotRef& event : freed.until) event->synchronize();
  freed.until.clear();
}

void* HostPool::reuse(std::int64_t bytes) {
  const auto size = freed_.find(bytes);
  if (size == freed_.end()) return nullptr;
  const auto ready = std::find_if(size->second.begin(), size->second.end(), settled);
  if (ready == size->second.end()) return nullptr;
  void* const data = ready->data;
  size->second.erase(ready);
  statistics_.cached_bytes -= bytes;
  return data;
}

// If new memory would exceed the limit, waits for a block of this size and returns it, or unpins
// others. Returns null if new memory may be pinned. Throws OutOfHostMemory if nothing helps.
void* HostPool::at_limit(std::int64_t bytes) {
  const auto fits = [&] { return bytes <= options_.bytes_max - statistics_.held_bytes(); };
  if (fits()) return nullptr;
  if (const auto size = freed_.find(bytes); size != freed_.end() && !size->second.empty()) {
    wait_for(size->second.front());
    return reuse(bytes);
  }
  while (!fits()) {
    if (!unpin_oldest()) throw torch_error(out_of_memory(bytes, "the limit is reached"));
  }
  return nullptr;
}

// Returns null if the system has no more memory; `cause` then has the text of the error.
void* HostPool::from_system(std::int64_t bytes, std::string& cause) {
  ++statistics_.system_calls;
  if (options_.kind == HostMemory::kPageable) {
    cause = "the system has no more";
    return std::aligned_alloc(static_cast<std::size_t>(kPage), static_cast<std::size_t>(bytes));
  }
  const c10::cuda::CUDAGuard guard(options_.device);
  void* data = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&data, static_cast<std::size_t>(bytes), cudaHostAllocDefault);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    cause = cudaGetErrorString(status);
    return nullptr;
  }
  C10_CUDA_CHECK(status);
  return data;
}

void HostPool::to_system(FreedBySize::iterator size, std::list<Freed>::iterator freed) noexcept {
  if (options_.kind == HostMemory::kPageable) {
    std::free(freed->data);
  } else {
    C10_CUDA_IGNORE_ERROR(cudaFreeHost(freed->data));
  }
  statistics_.cached_bytes -= size->first;
  size->second.erase(freed);
}

// Gives the block that was freed first back to the system, after the copies that may still use it.
// Returns false if no freed block is left.
bool HostPool::unpin_oldest() {
  auto oldest = freed_.end();
  for (auto size = freed_.begin(); size != freed_.end(); ++size) {
    if (size->second.empty()) continue;
    if (oldest == freed_.end() || size->second.front().order < oldest->second.front().order) {
      oldest = size;
    }
  }
  if (oldest == freed_.end()) return false;
  wait_for(oldest->second.front());
  to_system(oldest, oldest->second.begin());
  return true;
}

void HostPool::unpin_all() {
  while (unpin_oldest()) {
  }
}

// Does not wait: pending blocks stay.
void HostPool::shrink(std::int64_t cached_bytes) {
  if (statistics_.cached_bytes <= cached_bytes) return;
  std::vector<std::pair<std::uint64_t, FreedBySize::iterator>> oldest;
  for (auto size = freed_.begin(); size != freed_.end(); ++size) {
    for (const Freed& freed : size->second) oldest.emplace_back(freed.order, size);
  }
  std::sort(oldest.begin(), oldest.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [order, size] : oldest) {
    if (statistics_.cached_bytes <= cached_bytes) return;
    const auto freed = std::find_if(size->second.begin(), size->second.end(),
                                    [&](const Freed& each) { return each.order == order; });
    if (settled(*freed)) to_system(size, freed);
  }
}

std::int64_t HostPool::cached_bytes_max() const {
  return options_.cached_bytes_max < 0 ? statistics_.in_use_peak_bytes : options_.cached_bytes_max;
}

OutOfHostMemory HostPool::out_of_memory(std::int64_t bytes, const std::string& cause) const {
  const bool pinned = options_.kind == HostMemory::kPinned;
  std::string text = pinned ? "out of pinned host memory: tried to pin "
                            : "out of host memory: tried to allocate ";
  text += std::to_string(bytes) + " bytes; " + std::to_string(statistics_.held_bytes()) +
          " bytes are held, of which " + std::to_string(statistics_.in_use_bytes) + " in use";
  if (options_.bytes_max != std::numeric_limits<std::int64_t>::max()) {
    text += ", of a limit of " + std::to_string(options_.bytes_max);
  }
  return OutOfHostMemory(text + " (" + cause + ")");
}

}  // namespace ferry::real
