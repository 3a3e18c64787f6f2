// The mutants of the core: every step with every bend that applies to it, every rule, and every
// fault of the world beneath it.
//
// A mutant is caught by an oracle on some random program. Where programs cannot say what tells it
// from the core, it has a case of its own here, or a unit test of the core catches it.
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

// The part of the core that a mutant is bent in, or the world beneath it.
enum class MutantPart : std::uint8_t { kOffload, kCheckpoint, kPipeline, kBeneath };
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
// Ferry itself.
inline Mutant no_mutant(MutantPart part = MutantPart::kOffload) {
  return {"none", Rules(), std::nullopt, part, sim::WorldFault::kNoFault};
}

}  // namespace ferry::verify
