// What may be wrong beneath the core: pools, events, copies. The simulator does it right; with one
// of these it does not, so that the checkers can be shown to notice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ferry::sim {

enum class WorldFault : std::uint8_t {
  kNoFault,
  kOnePool,         // every stream's blocks come from one stream's pool
  kQueriesLie,      // a query says done, whatever it is asked
  kFreedTwice,      // device bytes go back twice
  kHostFreedTwice,  // host bytes do
  kShortCopies,     // a copy's bytes are rounded down to 512
  kOneEvent,        // all records go to one event
  kMiscounted,      // of a storage's references one is not seen
  kPoolBlocks,      // a pinned pool that is full waits for memory that only the caller can return
};
inline constexpr std::array<std::string_view, 9> kWorldFaultNames = {
    "none",         "one pool",  "queries lie", "freed twice", "host bytes freed twice",
    "short copies", "one event", "miscounted",  "pool blocks"};
static_assert(kWorldFaultNames.size() == static_cast<std::size_t>(WorldFault::kPoolBlocks) + 1);

constexpr std::string_view name(WorldFault fault) {
  return kWorldFaultNames[static_cast<std::size_t>(fault)];
}

}  // namespace ferry::sim
