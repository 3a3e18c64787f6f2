// Checks determinism: when a run is made again, it must issue exactly the same operations. Two runs
// are compared by a hash of their operations. Without this, a failure could not be replayed.
// closer_look.h makes the two runs.
#pragma once

#include <cstdint>

#include "sim/choices/hash.h"
#include "sim/gpu/machine.h"

namespace ferry::verify {

// Hashes the operations of a run in order. Names are left out because tags imply them. Tokens and
// kinds of streams are left out because only foreign logs have them.
class OpDigest final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    add(static_cast<std::uint64_t>(op.kind) << 32 | static_cast<std::uint64_t>(op.step) << 24 |
        static_cast<std::uint64_t>(op.copy) << 16 | static_cast<std::uint64_t>(op.pool) << 8 |
        static_cast<std::uint64_t>(op.host_order));
    add(static_cast<std::uint64_t>(op.stream) << 32 | static_cast<std::uint64_t>(op.event));
    add(static_cast<std::uint64_t>(op.thread) << 32 | op.device);
    add(op.reads.size() << 32 | op.writes.size());
    add(op.tag);
    add(op.range);
    for (const Range& range : op.reads) add(range);
    for (const Range& range : op.writes) add(range);
  }
  std::uint64_t value() const { return value_; }

 private:
  void add(std::uint64_t x) { value_ = choices::combine(value_, x); }
  void add(const Range& range) {
    add(range.address);
    add(range.bytes);
  }
  std::uint64_t value_ = 0;
};

}  // namespace ferry::verify
