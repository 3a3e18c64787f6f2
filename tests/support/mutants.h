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
#include "tests/support/pipeline_trial.h"

namespace ferry::test {

struct Mutant {
  std::string name;
  Rules rules;
  std::optional<Mutation> mutation;
  bool of_pipeline = false;  // else of offloading or checkpoints
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
      mutants.push_back({std::string(name(mutation.step)) + ": " + std::string(name(bend)), Rules(),
                         mutation, step >= kCheckpointSteps});
    }
  }
  for (std::size_t rule = 0; rule < kRules; ++rule) {
    mutants.push_back({"rule: " + std::string(kRuleNames[rule]),
                       Rules::without(static_cast<Rule>(rule)), std::nullopt,
                       rule >= kCheckpointRules});
  }
  return mutants;
}

struct Kill {
  std::string oracle;
  std::string words;
  int programs = 0;  // that it took
};

// The same trials for every mutant: a trial depends on its number alone.
inline std::optional<Verdict> try_mutant(const Mutant& mutant, int number) {
  const rc::Random random(static_cast<std::uint64_t>(number));
  if (mutant.of_pipeline) {
    return try_pipeline(any_pipeline_trial()(random, 100).value(), mutant.rules, mutant.mutation);
  }
  return try_core(any_trial()(random, 100).value(), mutant.rules, mutant.mutation);
}

inline std::optional<Kill> hunt(const Mutant& mutant, int programs) {
  for (int i = 0; i < programs; ++i) {
    if (const auto verdict = try_mutant(mutant, i)) {
      return Kill{verdict->oracle, verdict->words, i + 1};
    }
  }
  return std::nullopt;
}

}  // namespace ferry::test
