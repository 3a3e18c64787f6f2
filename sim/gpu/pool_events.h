// What the memory pools ask of the device: to remember a stream's work, and whether it is over.
//
// A pool may query to recycle: PyTorch's pools poll their events so. Tokens are the caller's; each
// one that record() made (or that a host buffer was freed with) is dropped exactly once.
#pragma once

#include <cstdint>

#include "formats/stream_op.h"

namespace ferry::sim {

enum class PoolToken : std::uint64_t {};

class PoolEvents {
 public:
  virtual ~PoolEvents() = default;
  virtual PoolToken record(StreamId stream) = 0;  // what `stream` was given so far
  virtual bool done(PoolToken token) = 0;
  virtual void wait(PoolToken token) = 0;  // blocks the host; only to get out of want of memory
  virtual void drop(PoolToken token) = 0;
};

// Current and highest value.
struct Gauge {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  void add(std::int64_t change) {
    current += change;
    if (current > peak) peak = current;
  }
};

}  // namespace ferry::sim
