// Every mutant of the core is killed on the CPU device, by an oracle on some trial of random
// rounds, or it is listed with the reason why it cannot show there. Never both: a listed one that
// is killed fails, as an unlisted one that survives does, and the core itself survives all trials.
//
// The mutants are those of the simulator's matrix (tests/verify/core/matrix_test.cpp) that
// speak of offloading (tests/real/offload_mutants.h). The matrix is printed: mutant, oracle,
// trials.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/real/cpu/rounds.h"
#include "tests/real/offload_mutants.h"

namespace ferry::real {
namespace {

// The slowest takes about 150.
constexpr int kTrials = 1500;
constexpr int kRounds = 3;

const std::map<std::string, std::string>& cannot_show() {
  static const std::map<std::string, std::string> list = {
      {"rule: release late",
       "the event is recorded after the node: waiting for it a node early costs overlap, not "
       "safety"},
      {"rule: use source",
       "what is still on the device is copied back all the same: slower, and right. The "
       "simulator's accounts see it"},
  };
  return list;
}

struct Mutant {
  std::string name;
  Rules rules = {};
  std::optional<Mutation> mutation = {};
};
std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const Mutation mutation : offload_mutations()) {
    all.push_back({name_of(mutation), Rules(), mutation});
  }
  for (const Rule rule : offload_rules()) {
    all.push_back({"rule: " + std::string(name(rule)), Rules::without(rule), std::nullopt});
  }
  return all;
}

struct Kill {
  Verdict verdict;
  int trials = 0;  // that it took
};

// The same trials for every mutant.
std::optional<Kill> hunt(const Mutant& mutant, int trials) {
  for (int i = 0; i < trials; ++i) {
    Rounds rounds(static_cast<std::uint64_t>(i), mutant.rules, mutant.mutation);
    if (const auto verdict = rounds.run(kRounds)) return Kill{*verdict, i + 1};
  }
  return std::nullopt;
}

class CpuMutant : public testing::TestWithParam<Mutant> {};

TEST_P(CpuMutant, IsKilledOrListed) {
  const Mutant& mutant = GetParam();
  const auto listed = cannot_show().find(mutant.name);
  if (listed != cannot_show().end()) {
    const auto kill = hunt(mutant, kTrials);
    EXPECT_FALSE(kill) << "trial " << kill->trials << " kills it (" << kill->verdict.words
                       << "): take it off the list";
    std::cout << mutant << " | cannot show | - | " << listed->second << "\n";
    return;
  }
  const auto kill = hunt(mutant, kTrials);
  ASSERT_TRUE(kill) << mutant << " survives";
  std::cout << mutant << " | " << kill->verdict.oracle << " | " << kill->trials << " | "
            << kill->verdict.words << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, CpuMutant, testing::ValuesIn(mutants()), [](const auto& each) {
  std::string text = each.param.name;
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return text;
});

TEST(CpuMutants, EveryListedOneExists) {
  const std::vector<Mutant> all = mutants();
  for (const auto& [listed, reason] : cannot_show()) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Mutant& mutant) {
      return mutant.name == listed;
    })) << listed;
  }
}

// And whatever the core does, the rounds reach.
TEST(CpuMutants, TheCoreItselfSurvivesTheSameHunt) {
  OffloadStatistics sum;
  for (int i = 0; i < kTrials; ++i) {
    Rounds rounds(static_cast<std::uint64_t>(i), Rules(), std::nullopt);
    const auto verdict = rounds.run(kRounds);
    ASSERT_FALSE(verdict) << "trial " << i << ": " << verdict->oracle << ": " << verdict->words;
    const OffloadStatistics one = rounds.statistics();
    sum.kept += one.kept;
    sum.shared += one.shared;
    sum.offloaded_count += one.offloaded_count;
    sum.reloaded_count += one.reloaded_count;
    sum.prefetched_count += one.prefetched_count;
    sum.stash_hits += one.stash_hits;
    sum.target_hits += one.target_hits;
    sum.vain_count += one.vain_count;
  }
  for (const std::int64_t count :
       {sum.kept, sum.shared, sum.offloaded_count, sum.reloaded_count, sum.prefetched_count,
        sum.stash_hits, sum.target_hits, sum.vain_count}) {
    EXPECT_GT(count, kTrials);
  }
}

}  // namespace
}  // namespace ferry::real
