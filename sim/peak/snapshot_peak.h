// Finds the moment of a memory snapshot that has to be explained, and what was allocated then.
//
// With a recorded history this is the peak of allocated memory: the first moment at which the most
// bytes were allocated. An allocation that failed counts as if it had succeeded, because its
// request did not fit. Without a history it is the moment of the snapshot. Each device has its own.
//
// The history may begin in the middle of the training. So the memory at its beginning is found by
// undoing all entries from the snapshot's end; of blocks from before that, the stack is known only
// if they lived until the snapshot. Bytes are as requested: what the allocator adds by rounding
// counts as a hole, as it cannot be told from one except at the snapshot's own moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::peak {

struct LiveBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;            // as requested
  std::optional<std::size_t> entry;  // its allocation in the trace; none: before the history
  StackId stack = kNoStack;
  bool pending = false;  // freed by the program, but a stream may still use it
};

// The reserved bytes that no block has.
struct Unused {
  std::int64_t pending_bytes = 0;  // blocks that wait for a stream
  std::int64_t holes_bytes = 0;    // in segments that have blocks, with what rounding adds
  std::size_t holes = 0;
  std::int64_t largest_hole_bytes = 0;
  std::int64_t cached_bytes = 0;  // segments without any block
  std::size_t cached_segments = 0;
};

// An allocation that failed.
struct Failure {
  std::int64_t bytes = 0;
  std::int64_t device_free_bytes = 0;
  StackId stack = kNoStack;
};

struct Moment {
  std::uint32_t device = 0;
  std::size_t entries = 0;           // of the device's trace
  std::optional<std::size_t> entry;  // the entry that reached the peak; none: the peak was at the
                                     // beginning of the history, or there is no history
  std::int64_t time_us = 0;          // of the entry; 0 without one
  std::int64_t allocated_bytes = 0;  // of the blocks that are not pending, without a failure
  std::int64_t reserved_bytes = 0;
  std::vector<LiveBlock> blocks;  // by address, with pending ones
  Unused unused;
  std::optional<Failure> failure;  // the peak is this request
  std::size_t mismatches = 0;      // entries that do not fit the blocks: the history has gaps

  // With the bytes of the failed request.
  std::int64_t peak_bytes() const { return allocated_bytes + (failure ? failure->bytes : 0); }
};

// Returns the moments of the devices that have memory or a history, by device.
std::vector<Moment> moments_of(const MemorySnapshot& snapshot);

// The steps of the training in the history, by PyTorch's marks at calls of Optimizer.step.
struct Steps {
  std::size_t before = 0;        // steps that ended before the moment
  std::size_t all = 0;           // in the history
  std::uint64_t old_blocks = 0;  // allocated before the step that the moment is in
  std::int64_t old_bytes = 0;
};
// Returns nothing if no step ended before the moment.
std::optional<Steps> steps_of(const MemorySnapshot& snapshot, const Moment& moment);

}  // namespace ferry::peak
