// Replays the trace of a PyTorch memory snapshot on the simulated allocator: makes the same
// requests, frees and waits in the same order, and checks that the allocator does the same.
//
// "The same" means: every block has the same address; segments are taken and given back at the same
// time; frees complete at the same time; the same requests run out of memory; and the segments and
// blocks at the end are the same. What comes from outside the allocator is taken from the snapshot:
// where the device puts segments, whether it has memory left, and when work on other streams is
// done.
//
// A trace may begin in the middle, even of a call; then the rest of that call is skipped. If it
// does not tell how large an older block was (snapshot_start.h), a difference may come from that,
// and the start is unknown. The order in which older segments were made is found by trying
// (segment_order.h), except for PyTorch 2.12, which looks at the age of each block.
//
// The number of addresses of an expandable segment depends on the device's memory, which is not in
// a snapshot. A request that finds too few addresses reserves new ones, even if the device then has
// no memory for it. They stay, and may be used next. So the replay tries all numbers of addresses
// that make a difference to such requests.
//
// Not replayed, because it is not in a snapshot: the memory fraction, and with it garbage
// collection. Not told apart, if frees complete before segments are given back: those that a query
// found done, and those that were waited for. With max_split_size_mb this may show as a difference
// that is not real.
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
  std::optional<std::size_t> entry;  // index in the trace; none: the segments at the end differ
  std::string real;                  // "alloc of 512 bytes at 0x7f…", or "nothing more"
  std::string simulated;
  std::optional<std::uint64_t> simulated_alloc;  // its address, if it was an allocation
  // If the same was done with another block: both addresses. The first one must be of the block
  // that is older to PyTorch.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> older_and_newer;
};

struct SnapshotReplay {
  std::int64_t entries = 0;  // entries that were replayed
  std::int64_t allocations = 0;
  std::int64_t segments = 0;  // at the end; all are the same if there is no difference
  std::optional<ReplayDifference> difference;
  // The difference may come from the trace's beginning in the middle, and not be real.
  bool start_unknown = false;
};

// Called after each call, with the number of entries that are done and of all, over all devices.
using ReplayProgress = std::function<void(std::size_t done, std::size_t all)>;

// Throws InputError if the snapshot's trace contradicts itself or cannot be simulated.
SnapshotReplay replay_snapshot(const MemorySnapshot& snapshot, const std::string& file,
                               const ReplayProgress& progress = {});

}  // namespace ferry::sim
