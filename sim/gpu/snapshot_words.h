// The entries of a memory snapshot as text for people, for the differences that a replay finds
// (snapshot_replay.h).
#pragma once

#include <string>

#include "formats/memory_snapshot.h"

namespace ferry::sim {

std::string in_words(const MemoryEvent& event);  // "alloc of 512 bytes at 0x7f… on stream 0"
std::string in_words(const MemorySegment& segment);

}  // namespace ferry::sim
