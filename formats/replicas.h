// Gives each stage its own copy of a global that several stages use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/program.h"

namespace ferry {

struct Replicas {
  std::vector<std::uint32_t> stage_of;  // by global
  std::vector<Slot> replica_of;         // kNoSlot: this is an original
};

// `stages`: codes that each run on a device of their own, with their nodes' bodies and all codes
// called. A global stays with the first stage that uses its storage. Each further stage gets a
// copy, after the other globals, named "name@stage", and its own versions of the codes that name
// it. Throws std::invalid_argument if a stage writes such a global in place or moves it: the other
// stages would not see it.
Replicas replicate_globals(Program& program, std::span<const CodeId> stages);

}  // namespace ferry
