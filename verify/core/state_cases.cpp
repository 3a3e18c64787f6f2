// Special cases (cases.h) for the steps of wards. A random program has no state that outlives its
// step, so the mutants of these steps are tried on random trainings with wards.
#include <cstdint>
#include <optional>

#include "verify/core/cases.h"
#include "verify/trials/try_wards.h"

namespace ferry::verify {
namespace {

constexpr std::uint64_t kTrainings = 400;

}  // namespace

bool wards_are_right(const Mutant& mutant) {
  for (std::uint64_t number = 0; number < kTrainings; ++number) {
    if (try_wards(number, mutant.mutation)) return false;
  }
  return true;
}

}  // namespace ferry::verify
