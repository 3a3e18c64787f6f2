// The segments that an allocator had when the trace of its snapshot began: the trace, undone entry
// by entry from the segments at its end.
//
// What a free block was made of is not in a snapshot. A block that was freed within the trace has
// its rounded size again, with the rest that the allocator does not split off: in the large pool no
// free block is as small as such a rest, so the space behind it tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

// Of one device; streams are as in the snapshot. Throws InputError (with `file`) where the trace
// does not lead to the segments, where it has what is no part of a replay (private pools), and
// where it begins with expandable segments, whose addresses it does not say.
std::vector<MemorySegment> segments_at_start(const MemorySnapshot& snapshot, std::size_t device,
                                             const std::string& file);

}  // namespace ferry::sim
