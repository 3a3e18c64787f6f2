// The stream-ordered allocator (cudaMallocAsync): the default pool of each device (memory_pool.h),
// with the device's memory behind it.
//
// A block comes from the first of these that suffices: what its stream has freed; new memory of the
// device; new memory after wholly free segments went back to the device; what other streams have
// freed, for which the block's stream then waits. When the host synchronises, the device finishes,
// and free segments go back to it, down to the pool's threshold. Each allocation and free of a
// block is reported to the log and the clock.
//
// The runtime's lock guards the class (runtime.h); any thread of the program may call it. It owns
// the pools; device_memory.h owns the memory. Not modelled: pools other than the default ones, and
// pools shared with other processes.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "vgpu/runtime/card_time.h"
#include "vgpu/runtime/device_memory.h"
#include "vgpu/runtime/log.h"
#include "vgpu/runtime/memory_pool.h"
#include "vgpu/runtime/queues.h"
#include "vgpu/runtime/schedule.h"

namespace ferry::vgpu {

class Pools {
 public:
  Pools(DeviceMemory& memory, Schedule& schedule, Queues& queues, Log& log, CardTime& time)
      : memory_(memory), schedule_(schedule), queues_(queues), log_(log), time_(time) {}
  Pools(const Pools&) = delete;
  Pools& operator=(const Pools&) = delete;

  MemoryPool& pool(int device) { return pools_[static_cast<std::size_t>(device)]; }
  cudaMemPool_t handle(int device) { return reinterpret_cast<cudaMemPool_t>(&pool(device)); }
  // Returns nullopt if the handle is no pool's.
  std::optional<int> device_of(cudaMemPool_t handle) const;

  // Allocates a block on the stream's device, for use on the stream. Returns null if there is no
  // memory.
  void* allocate(std::size_t bytes, Stream& stream);
  // The stream may use the block again. Returns false if no pool has such a block.
  bool free(void* address, const Stream& stream);
  // Gives free segments back to the device until at most `kept` bytes are reserved.
  void release_unused(int device, std::uint64_t kept);
  void release_unused(int device);  // keeps the pool's threshold

 private:
  bool add_segment(int device, std::size_t bytes);
  std::optional<std::uintptr_t> take(std::size_t bytes, Stream& stream);
  void tell(StreamOpKind kind, const Stream& stream, void* address, std::size_t bytes);

  DeviceMemory& memory_;
  Schedule& schedule_;
  Queues& queues_;
  Log& log_;
  CardTime& time_;
  std::array<MemoryPool, kDevices> pools_;
};

}  // namespace ferry::vgpu
