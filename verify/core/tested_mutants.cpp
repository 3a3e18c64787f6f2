#include "verify/core/tested_mutants.h"

#include "verify/core/cases.h"

namespace ferry::verify {

std::string_view unit_test(const Mutant& mutant) {
  for (const TestedMutant& each : kTestedMutants) {
    if (each.mutant == mutant.name) return each.test;
  }
  return "";
}

}  // namespace ferry::verify
