// Cases for mutants that random programs cannot tell from the core, by the mutant's name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "verify/mutants/mutants.h"

namespace ferry::verify {

// A test of something that programs do not show. It returns true where the core does it right.
using MutantCase = std::function<bool(const Mutant&)>;

inline MutantCase case_of_rules(bool (*holds)(Rules)) {
  return [holds](const Mutant& mutant) { return holds(mutant.rules); };
}

std::map<std::string, MutantCase> offload_cases();

// Null: it has none.
const MutantCase* own_case(const Mutant& mutant);
// Returns the unit test that catches the mutant (tested_mutants.h). Empty where random programs, or
// a case of its own, do.
std::string_view unit_test(const Mutant& mutant);

}  // namespace ferry::verify
