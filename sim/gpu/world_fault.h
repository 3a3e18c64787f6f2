// Faults beneath the core: in pools, events and copies. The simulator itself is correct. Tests add
// one of these faults to show that the checkers notice it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::sim {

enum class WorldFault : std::uint8_t {
  kNoFault,
  kOnePool,         // every stream's blocks come from one stream's pool
  kQueriesLie,      // every query answers done
  kFreedTwice,      // device bytes are freed twice
  kHostFreedTwice,  // host bytes are freed twice
  kShortCopies,     // a copy's bytes are rounded down to 512
  kOneEvent,        // all records share one event
  kMiscounted,      // one reference of a storage is not counted
  kPoolBlocks,      // a full pinned pool waits for memory that only the caller can return
};
inline constexpr std::array<std::string_view, 9> kWorldFaultNames = {
    "none",         "one pool",  "queries lie", "freed twice", "host bytes freed twice",
    "short copies", "one event", "miscounted",  "pool blocks"};
static_assert(kWorldFaultNames.size() == static_cast<std::size_t>(WorldFault::kPoolBlocks) + 1);

constexpr std::string_view name(WorldFault fault) {
  return kWorldFaultNames[static_cast<std::size_t>(fault)];
}

}  // namespace ferry::sim
