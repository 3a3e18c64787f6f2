// The interface that memory pools need of the device: remember a stream's work, and tell if it is
// done.
//
// A pool may query before it recycles, as PyTorch's pools poll their events. Tokens are the
// caller's; each one that record() made (or that a host buffer was freed with) is dropped exactly
// once.
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

// The current and the highest value.
struct Gauge {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  void add(std::int64_t change) {
    current += change;
    if (current > peak) peak = current;
  }
};

}  // namespace ferry::sim
