// Cases for mutants that random programs cannot tell from the core, by the mutant's name.
#pragma once

#include <map>
#include <string>

#include "verify/mutants/mutants.h"

namespace ferry::verify {

inline MutantCase case_of_rules(bool (*holds)(Rules)) {
  return [holds](const Mutant& mutant) { return holds(mutant.rules); };
}

std::map<std::string, MutantCase> offload_cases();

}  // namespace ferry::verify
