// The mutants of the core: every step with every bend that applies to it, and every rule.
//
// Each one is caught by an oracle on some random program, or it is listed here with the reason why
// nothing can tell it from the core.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/rules.h"
#include "tests/support/oracles.h"

namespace ferry::test {

struct Mutant {
  std::string name;
  Rules rules;
  std::optional<Mutation> mutation;
  friend std::ostream& operator<<(std::ostream& out, const Mutant& mutant) {
    return out << mutant.name;
  }
};

inline std::vector<Mutant> all_mutants() {
  std::vector<Mutant> mutants;
  for (std::size_t step = 0; step < kSteps; ++step) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{static_cast<Step>(step), bend};
      if (!applies(mutation)) continue;
      mutants.push_back(
          {std::string(name(mutation.step)) + ": " + std::string(name(bend)), Rules(), mutation});
    }
  }
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    mutants.push_back({"rule: " + std::string(kRuleNames[rule]),
                       Rules::without(static_cast<Rule>(rule)), std::nullopt});
  }
  return mutants;
}

struct Kill {
  std::string oracle;
  std::string words;
  int programs = 0;  // that it took
};

// The same trials for every mutant: a trial depends on its number alone.
inline std::optional<Kill> hunt(const Mutant& mutant, int programs) {
  for (int i = 0; i < programs; ++i) {
    const Trial trial = any_trial()(rc::Random(static_cast<std::uint64_t>(i)), 100).value();
    if (const auto verdict = try_core(trial, mutant.rules, mutant.mutation)) {
      return Kill{verdict->oracle, verdict->words, i + 1};
    }
  }
  return std::nullopt;
}

}  // namespace ferry::test
