// Special cases for mutants that no random program can show, by the mutant's name. The mutation
// matrix (matrix.h) runs a case instead of programs. Each case uses the core directly, with the
// rules of the mutant. It must hold without the mutant and fail with it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "verify/mutants/mutants.h"

namespace ferry::verify {

// Tests something that programs do not show. Returns true if the core, with this mutant, is right.
using MutantCase = std::function<bool(const Mutant&)>;

inline MutantCase case_of_rules(bool (*holds)(Rules)) {
  return [holds](const Mutant& mutant) { return holds(mutant.rules); };
}

std::map<std::string, MutantCase> offload_cases();
// Returns true if random trainings with wards are right.
bool wards_are_right(const Mutant& mutant);

// Returns null if the mutant has no special case.
const MutantCase* own_case(const Mutant& mutant);
// Returns the unit test that catches the mutant (tested_mutants.h). Empty if random programs or a
// special case catch it.
std::string_view unit_test(const Mutant& mutant);

}  // namespace ferry::verify
