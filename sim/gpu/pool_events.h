// The interface by which memory pools remember the work of a stream, and ask if it is done.
//
// A pool may query before it reuses memory, as PyTorch's pools poll their events. Tokens belong to
// the caller: each one that record() made (or with which a host buffer was freed) is dropped
// exactly once.
#pragma once

#include <cstdint>

#include "formats/stream_op.h"

namespace ferry::sim {

enum class PoolToken : std::uint64_t {};

class PoolEvents {
 public:
  virtual ~PoolEvents() = default;
  virtual PoolToken record(StreamId stream) = 0;  // the work given to `stream` so far
  virtual bool done(PoolToken token) = 0;
  virtual void wait(PoolToken token) = 0;  // blocks the host; only when memory is short
  virtual void drop(PoolToken token) = 0;
};

// A value and its peak.
struct Gauge {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  void add(std::int64_t change) {
    current += change;
    if (current > peak) peak = current;
  }
};

}  // namespace ferry::sim
