// How trials are judged, and mutants of the core.
#pragma once

#include <optional>
#include <string>

#include "sim/verify/oracles/verdict.h"
#include "sim/verify/trials/try_core.h"

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
