// Helpers of the tests of trials: what is said of one, and mutants of the core.
#pragma once

#include <optional>
#include <string>

#include "verify/oracles/verdict.h"
#include "verify/trials/try_core.h"

namespace ferry::verify {

// Empty where nobody objects.
inline std::string words(const std::optional<Verdict>& verdict) {
  return verdict ? to_string(*verdict) : "";
}

inline Subject without(Rule rule) {
  Subject subject;
  subject.rules = Rules::without(rule);
  return subject;
}

}  // namespace ferry::verify
