#include "sim/gpu/memory_recorder.h"

#include "sim/gpu/device_pool.h"

namespace ferry::sim {

void MemoryRecorder::on(const PoolEntry& entry) {
  events_.push_back({.action = entry.action,
                     .address = entry.address,
                     .bytes = entry.bytes,
                     .stream = static_cast<std::uint64_t>(entry.stream),
                     .time_us = machine_.host_now() / 1000});
}

MemorySnapshot MemoryRecorder::snapshot() const {
  const DevicePool& pool = machine_.pool();
  return {pool.snapshot(), {events_}, pool.options().conf};
}

}  // namespace ferry::sim
