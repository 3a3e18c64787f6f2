// Copies globals that several stages of a pipeline use, so that each stage has its own on its own
// device. cut_into_stages (stages.h) calls it. Whoever runs the stages has to add up the gradients
// of the copies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/program.h"

namespace ferry {

struct Replicas {
  std::vector<std::uint32_t> stage_of;  // for each global: its stage
  std::vector<Slot> replica_of;         // for each global: its original; kNoSlot: it is no copy
};

// `stages` are codes that each run on their own device, with the codes that they call and the
// bodies of their nodes. A global stays with the first stage that uses its storage. Each other
// stage gets a copy, named "name@stage", after the other globals, and its own versions of the codes
// that name the global. Throws std::invalid_argument if a stage writes such a global in place or
// moves it, because the other stages would not see the change.
Replicas replicate_globals(Program& program, std::span<const CodeId> stages);

}  // namespace ferry
