// What the caching allocator does, action by action, as PyTorch's memory history records it.
//
// Models TraceEntry and record_trace of c10/cuda/CUDACachingAllocator.{h,cpp} (2.11). The order of
// an allocation's entries: frees that were completed by then; what was given back to the device;
// what was got from it; the allocation, or kOom.
//
// Not as PyTorch's: where several streams' frees complete at once, theirs are in the order of a
// hash of the streams, and these in the order of the streams' numbers.
#pragma once

#include <cstdint>

#include "formats/memory_snapshot.h"
#include "formats/stream_op.h"

namespace ferry::sim {

struct PoolEntry {
  MemoryAction action{};
  std::uint64_t address = 0;  // kOom: the bytes that the device has free
  std::int64_t bytes = 0;     // as requested; of segments all; kOom: as rounded
  StreamId stream{};
  std::uint64_t segment = 0;  // the address of the segment
};

class PoolTrace {
 public:
  virtual ~PoolTrace() = default;
  virtual void on(const PoolEntry& entry) = 0;
};

}  // namespace ferry::sim
