// What the hunts of mutants on a device share: the name of a mutant in a test's words, and the
// tally of which oracle objected to it, after how many trials.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <ostream>
#include <string>

#include "tests/real/offload_mutants.h"

namespace ferry {

// For GoogleTest, which looks beside the type.
inline void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << name(mutation.step) << ": " << name(mutation.bend);
}

namespace real {

inline std::string test_name(std::string text) {
  for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text;
}
inline std::string mutant_test_name(const testing::TestParamInfo<Mutation>& mutant) {
  return test_name(name_of(mutant.param));
}
inline std::string rule_test_name(const testing::TestParamInfo<Rule>& rule) {
  return test_name(std::string(name(rule.param)));
}

struct HuntTrials {
  std::uint64_t most = 0;
  std::uint64_t for_both = 0;  // so many, that a second oracle may object as well
};

// `attempt` takes a trial's number and gives its verdict, or none. One that objects is enough.
// Prints a line: the mutant, each oracle with its first trial, and the first one's words.
template <class Attempt>
void expect_caught(Mutation mutation, HuntTrials trials, Attempt attempt) {
  constexpr std::size_t kOracles = 2;
  std::map<std::string, std::uint64_t> first;  // trial, by oracle
  std::string words;
  for (std::uint64_t trial = 0; trial < trials.most && first.size() < kOracles; ++trial) {
    if (!first.empty() && trial >= trials.for_both) break;
    const auto verdict = attempt(trial);
    if (verdict && first.emplace(verdict->oracle, trial + 1).second && words.empty()) {
      words = verdict->words;
    }
  }
  EXPECT_FALSE(first.empty()) << name_of(mutation) << " survives";
  std::cout << name_of(mutation);
  for (const auto& [oracle, trial] : first) std::cout << " | " << oracle << " " << trial;
  std::cout << " | " << words << "\n";
}

}  // namespace real
}  // namespace ferry
