#include "vgpu/runtime/pools.h"

namespace ferry::vgpu {

std::optional<int> Pools::device_of(cudaMemPool_t handle) const {
  for (int device = 0; device < kDevices; ++device) {
    const MemoryPool* const pool = &pools_[static_cast<std::size_t>(device)];
    if (reinterpret_cast<const MemoryPool*>(handle) == pool) return device;
  }
  return std::nullopt;
}

void* Pools::allocate(std::size_t bytes, Stream& stream) {
  const auto block = take(bytes, stream);
  if (!block) return nullptr;
  void* const address = reinterpret_cast<void*>(*block);
  tell(StreamOpKind::kAlloc, stream, address, MemoryPool::rounded(bytes));
  return address;
}

std::optional<std::uintptr_t> Pools::take(std::size_t bytes, Stream& stream) {
  MemoryPool& pool = this->pool(stream.device);
  if (const auto own = pool.allocate(bytes, stream.id)) return own;
  if (add_segment(stream.device, bytes)) return pool.allocate(bytes, stream.id);
  release_unused(stream.device, 0);
  if (add_segment(stream.device, bytes)) return pool.allocate(bytes, stream.id);
  for (const StreamId owner : pool.give_all_to(stream.id)) queues_.order(owner, stream);
  return pool.allocate(bytes, stream.id);
}

bool Pools::add_segment(int device, std::size_t bytes) {
  const std::size_t size = MemoryPool::segment_bytes(bytes);
  if (size > static_cast<std::size_t>(memory_.free_bytes(device))) return false;
  void* const segment = memory_.allocate(size, device);
  if (segment == nullptr) return false;
  pool(device).add_segment(reinterpret_cast<std::uintptr_t>(segment), size);
  return true;
}

bool Pools::free(void* address, const Stream& stream) {
  for (MemoryPool& pool : pools_) {
    const auto bytes = pool.free(reinterpret_cast<std::uintptr_t>(address), stream.id);
    if (!bytes) continue;
    tell(StreamOpKind::kFree, stream, address, *bytes);
    return true;
  }
  return false;
}

void Pools::release_unused(int device, std::uint64_t kept) {
  if (pool(device).reserved().now <= kept) return;
  schedule_.finish_device(device);
  for (const std::uintptr_t segment : pool(device).take_free_segments(kept)) {
    memory_.free(reinterpret_cast<void*>(segment));
  }
}

void Pools::release_unused(int device) { release_unused(device, pool(device).release_threshold()); }

void Pools::tell(StreamOpKind kind, const Stream& stream, void* address, std::size_t bytes) {
  StreamOp op;
  op.kind = kind;
  op.stream = stream.id;
  op.range = memory_.range(address, bytes);
  op.pool = PoolKind::kAsync;
  log_.tell(op);
  const auto change = static_cast<std::int64_t>(bytes);
  time_.allocated(stream.device, kind == StreamOpKind::kAlloc ? change : -change);
}

}  // namespace ferry::vgpu
