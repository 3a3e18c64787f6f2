// How trials are judged, and mutants of the core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/choices/draws.h"
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

// What the judge says first, of so many seeds; empty: nothing.
template <class Judge>
std::string objection(const Judge& judge, std::uint64_t seeds = 300) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    choices::Draws draws(seed);
    if (const std::optional<Verdict> verdict = judge(draws)) return to_string(*verdict);
  }
  return "";
}

// What the script says first, of so many numbers, to a core that keeps these rules.
template <class Script>
std::optional<Verdict> script_objection(const Script& script, const Rules& rules) {
  constexpr int kScripts = 400;
  for (int number = 0; number < kScripts; ++number) {
    if (auto verdict = script(DrawnUses{number, kMostUses}, rules)) return verdict;
  }
  return std::nullopt;
}

}  // namespace ferry::verify
