// Globals that several stages use, once for each of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/program.h"

namespace ferry {

struct Replicas {
  std::vector<std::uint32_t> stage_of;  // by global
  std::vector<Slot> replica_of;         // kNoSlot: an original
};

// `stages`: codes, of which each runs on a device of its own with the bodies of its nodes and all
// that these call. A global stays with the first stage that uses it, or a global that shares its
// storage; each further one gets a copy, after the other globals, named "name@stage", and codes
// that name it, for its own runs. Throws std::invalid_argument where a stage writes such a global
// in place or moves it: the others would not see it.
Replicas replicate_globals(Program& program, std::span<const CodeId> stages);

}  // namespace ferry
