// A pool's history as a PyTorch memory snapshot, for tests.
#pragma once

#include <vector>

#include "formats/memory_snapshot.h"
#include "sim/gpu/device_pool.h"

namespace ferry::sim {

class RecordedMemory final : public PoolTrace {
 public:
  explicit RecordedMemory(DevicePool& pool) : pool_(pool) { pool.trace_to(this); }
  void on(const PoolEntry& entry) override {
    events.push_back({.action = entry.action,
                      .address = entry.address,
                      .bytes = entry.bytes,
                      .stream = static_cast<std::uint64_t>(entry.stream)});
  }
  MemorySnapshot snapshot() const { return {pool_.snapshot(), {events}, pool_.options().conf}; }

  std::vector<MemoryEvent> events;

 private:
  DevicePool& pool_;
};

}  // namespace ferry::sim
