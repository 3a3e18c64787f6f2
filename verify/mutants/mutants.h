// The mutants of the core: every step with every bend that applies to it, every rule, and every
// fault of the simulated world below the core. They test the oracles (`ferry verify --mutants`,
// verify/core/matrix.h).
//
// A mutant must be caught by an oracle on some random program. If no program can show the
// difference, a special case (verify/core/cases.h) or a unit test of the core catches it.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/seam/rules.h"
#include "sim/gpu/world_fault.h"

namespace ferry::verify {

// The part of the core that a mutant changes; kBeneath is the world below the core.
enum class MutantPart : std::uint8_t { kOffload, kCheckpoint, kPipeline, kState, kBeneath };
std::string_view name(MutantPart part);

struct Mutant {
  std::string name;
  Rules rules;
  std::optional<Mutation> mutation;
  MutantPart part = MutantPart::kOffload;
  sim::WorldFault world_fault = sim::WorldFault::kNoFault;
};
std::ostream& operator<<(std::ostream& out, const Mutant& mutant);

std::vector<Mutant> all_mutants();
// Returns Ferry itself, without a fault.
inline Mutant no_mutant(MutantPart part = MutantPart::kOffload) {
  return {"none", Rules(), std::nullopt, part, sim::WorldFault::kNoFault};
}

}  // namespace ferry::verify
