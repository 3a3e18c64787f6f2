// The actions of the caching allocator, in the form of PyTorch's memory history.
//
// Models TraceEntry and record_trace of c10/cuda/CUDACachingAllocator.{h,cpp} (2.11). The entries
// of an allocation have this order: frees that have completed; memory given back to the device;
// memory got from it; the allocation, or kOom.
//
// One thing differs: if frees of several streams complete at once, PyTorch orders them by a hash of
// the streams, and this code by the streams' numbers.
#pragma once

#include <cstdint>

#include "formats/memory_snapshot.h"
#include "formats/stream_op.h"

namespace ferry::sim {

struct PoolEntry {
  MemoryAction action{};
  std::uint64_t address = 0;  // kOom: the free bytes of the device
  std::int64_t bytes = 0;     // as requested; of segments: all bytes; kOom: as rounded
  StreamId stream{};
  std::uint64_t segment = 0;  // the address of the segment
};

class PoolTrace {
 public:
  virtual ~PoolTrace() = default;
  virtual void on(const PoolEntry& entry) = 0;
};

}  // namespace ferry::sim
