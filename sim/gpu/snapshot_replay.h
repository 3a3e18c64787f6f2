// A PyTorch memory snapshot's trace through the simulated allocator: the requests, frees and waits
// that it tells of, in their order, and whether the allocator does the same with them.
//
// The same is: every block at the same address, every segment taken and given back at the same
// time, frees complete when they did, out of memory where it was; and the same segments and blocks
// at the end. What comes from outside the allocator is the snapshot's: where the device puts
// segments, whether it has memory left, and when work on other streams is done.
//
// A trace may begin in the middle, even of a call: then what is left of that call is passed over.
// Where it does not say how large a block was that was there before (snapshot_start.h), a
// difference may come from that, and the start is not known. In which order the segments were made
// that were there is found by trying (segment_order.h), and not for PyTorch 2.12, which looks at
// the age of each block.
//
// How many addresses an expandable segment has depends on the device's memory, which no snapshot
// says. A request that finds too few takes new ones, even if the device has no memory for it then;
// they stay, and may be used next. So it is tried with as many as such requests can tell apart.
//
// Not in a snapshot, so not replayed: the memory fraction, and with it garbage collection. Not told
// apart: of frees that complete before segments are given back, those that a query found done and
// those that were waited for. With max_split_size_mb that may show as a difference which is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

struct ReplayDifference {
  std::size_t device = 0;
  std::optional<std::size_t> entry;  // of the trace; none: of the segments at the end
  std::string real;                  // "alloc of 512 bytes at 0x7f…", or "nothing more"
  std::string simulated;
  std::optional<std::uint64_t> simulated_alloc;  // the address, if that is what it was
  // Where the same was done with another block: their addresses, of that first which must be the
  // older one to PyTorch.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> older_and_newer;
};

struct SnapshotReplay {
  std::int64_t entries = 0;  // that were replayed
  std::int64_t allocations = 0;
  std::int64_t segments = 0;  // at the end, all of which are the same without a difference
  std::optional<ReplayDifference> difference;
  // The difference may come from the trace's beginning in the middle, and be none.
  bool start_unknown = false;
};

// Of all devices' entries, how many there are and were replayed; called for each.
using ReplayProgress = std::function<void(std::size_t done, std::size_t all)>;

// Throws InputError where the snapshot's trace makes no sense.
SnapshotReplay replay_snapshot(const MemorySnapshot& snapshot, const std::string& file,
                               const ReplayProgress& progress = {});

}  // namespace ferry::sim
