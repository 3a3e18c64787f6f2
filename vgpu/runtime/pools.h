// The stream-ordered allocator (cudaMallocAsync): the default pool of each device (memory_pool.h),
// with the device's memory behind it.
//
// A block comes from what is cheapest: what its stream has freed, new memory of the device, memory
// that is free as a whole and goes back for that, and at last what other streams have freed, which
// its stream then waits for. What a pool has free goes back to the device when the host
// synchronises, down to the pool's threshold; the device finishes first. The blocks' lives go to
// the log and to the clock.
//
// The runtime's lock guards it (runtime.h), and any thread of the program calls. It owns the pools;
// the memory is device_memory.h's. Not modelled: other pools than the default ones, and pools that
// are shared with other processes.
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
  // None: it is no pool.
  std::optional<int> device_of(cudaMemPool_t handle) const;

  // A block of the stream's device, for use on the stream; null: there is no memory.
  void* allocate(std::size_t bytes, Stream& stream);
  // The block is the stream's to use again. False: it is no block of a pool's.
  bool free(void* address, const Stream& stream);
  // So many bytes that are free stay.
  void release_unused(int device, std::uint64_t kept);
  void release_unused(int device);  // the pool's threshold stays

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
