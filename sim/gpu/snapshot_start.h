// The segments that an allocator had when the trace of its snapshot began. They are found by
// undoing the trace, entry by entry, from the segments at its end.
//
// A snapshot does not tell what a free block was made of. If a block was in use at the start and
// was freed in the trace, only its requested size is known. possible_sizes.h computes the sizes
// that it may have had, and the smallest is taken. If others are possible, a request may get the
// space behind the block although, with the block's true size, that was too small or not the best
// fit.
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
  // The ends of blocks for which several sizes are possible, and the entries that free the blocks.
  std::map<std::uint64_t, std::size_t> unsure_ends;
};

// Returns the start of one device, before entry `from` of its trace. Throws InputError (with
// `file`) if the trace does not lead to the segments, if it has private pools (which cannot be
// replayed), or if it begins with expandable segments, whose addresses it does not tell.
SnapshotStart start_of(const MemorySnapshot& snapshot, std::size_t device, std::size_t from,
                       const std::string& file);

// True if an entry is only a step of a call: of an allocation or of empty_cache.
bool is_inner(MemoryAction action);

}  // namespace ferry::sim
