// The segments that an allocator had when the trace of its snapshot began: the trace, undone entry
// by entry from the segments at its end.
//
// What a free block was made of is not in a snapshot. Of a block that was in use at the start and
// freed within the trace, it has the requested size alone: possible_sizes.h says which sizes it may
// have had. The smallest of them is taken. Where there are others, a request may be given what lies
// behind the block that did not suffice, or was not the best, with the block's true size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

struct SnapshotStart {
  std::vector<MemorySegment> segments;  // streams are as in the snapshot
  // The ends of blocks of which several sizes are possible, and the entries that free them.
  std::map<std::uint64_t, std::size_t> unsure_ends;
};

// Of one device, before entry `from` of its trace. Throws InputError (with `file`) where the trace
// does not lead to the segments, where it has what is no part of a replay (private pools), and
// where it begins with expandable segments, whose addresses it does not say.
SnapshotStart start_of(const MemorySnapshot& snapshot, std::size_t device, std::size_t from,
                       const std::string& file);

// Whether an entry is a step of a call, and no call by itself: an allocation's or empty_cache's.
bool is_inner(MemoryAction action);

}  // namespace ferry::sim
