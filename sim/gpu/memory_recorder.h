// Records what device 0's allocator does, for a memory snapshot in PyTorch's format
// (`ferry simulate --snapshot`).
//
// Times are the host's, since the start of the run: a simulated run has no date.
#pragma once

#include <vector>

#include "formats/memory_snapshot.h"
#include "sim/gpu/machine.h"

namespace ferry::sim {

class MemoryRecorder final : public PoolTrace {
 public:
  // Records device 0 from now on. The machine must outlive it.
  explicit MemoryRecorder(Machine& machine) : machine_(machine) { machine_.trace_memory_to(this); }
  MemoryRecorder(const MemoryRecorder&) = delete;
  MemoryRecorder& operator=(const MemoryRecorder&) = delete;
  ~MemoryRecorder() override { machine_.trace_memory_to(nullptr); }

  void on(const PoolEntry& entry) override;
  MemorySnapshot snapshot() const;

 private:
  Machine& machine_;
  std::vector<MemoryEvent> events_;
};

}  // namespace ferry::sim
