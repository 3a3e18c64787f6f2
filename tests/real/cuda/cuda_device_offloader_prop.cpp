// The offloader on the CUDA device over the fake runtime: random rounds, at every tempo. And its
// mutants, which take one step wrongly: they give wrong bytes or a hazard.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/real/cuda/rounds.h"
#include "tests/real/offload_mutants.h"

namespace ferry::real {
namespace {

using fake_cuda::Tempo;
using Plain = Labelled<CudaDevice>;
using Mutated = Bent<Labelled<CudaDevice>>;

std::optional<Verdict> try_core(std::uint64_t trial, Tempo tempo) {
  return Rounds<Plain>(trial, tempo, Rules(), [](Plain device) { return device; }).run(3);
}

class OffloaderOnCuda : public testing::TestWithParam<Tempo> {};

TEST_P(OffloaderOnCuda, ReadsWhatWasSavedAndLeavesNothing) {
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    const auto verdict = try_core(trial, GetParam());
    ASSERT_FALSE(verdict) << "trial " << trial << ": " << verdict->oracle << ": " << verdict->words;
  }
}

std::string tempo_name(const testing::TestParamInfo<Tempo>& chosen) {
  constexpr std::array<const char*, 4> kNames = {"Eager", "Lazy", "Random", "Mixed"};
  return kNames[static_cast<std::size_t>(chosen.param)];
}
INSTANTIATE_TEST_SUITE_P(At, OffloaderOnCuda,
                         testing::Values(Tempo::kEager, Tempo::kLazy, Tempo::kRandom,
                                         Tempo::kMixed),
                         tempo_name);

// The rounds are of use: everything that can happen does.
TEST(Rounds, ReachEveryPath) {
  OffloadStatistics sum;
  for (std::uint64_t trial = 0; trial < 100; ++trial) {
    Rounds<Plain> rounds(trial, Tempo::kMixed, Rules(), [](Plain device) { return device; });
    const auto verdict = rounds.run(3);
    ASSERT_FALSE(verdict) << verdict->words;
    const OffloadStatistics one = rounds.statistics();
    sum.offloaded_count += one.offloaded_count;
    sum.reloaded_count += one.reloaded_count;
    sum.prefetched_count += one.prefetched_count;
    sum.shared += one.shared;
    sum.stash_hits += one.stash_hits;
    sum.target_hits += one.target_hits;
    sum.vain_count += one.vain_count;
  }
  for (const std::int64_t count : {sum.offloaded_count, sum.reloaded_count, sum.prefetched_count,
                                   sum.shared, sum.stash_hits, sum.target_hits, sum.vain_count}) {
    EXPECT_GT(count, 50);
  }
}

struct Mutant {
  std::string name;
  Mutation mutation;
};
std::ostream& operator<<(std::ostream& out, const Mutant& mutant) { return out << mutant.name; }

std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const Mutation mutation : offload_mutations()) all.push_back({name_of(mutation), mutation});
  return all;
}

class CudaMutant : public testing::TestWithParam<Mutant> {};

// By wrong bytes at least, or by the checkers where bytes tell nothing.
TEST_P(CudaMutant, IsCaught) {
  constexpr int kTrials = 4000;
  constexpr int kTrialsForBoth = 300;
  std::map<std::string, int> first;  // trial, by oracle
  std::string words;
  const auto bend = [](Labelled<CudaDevice> device) {
    return Mutated(std::move(device), GetParam().mutation);
  };
  for (int trial = 0; trial < kTrials && first.size() < 2; ++trial) {
    if (!first.empty() && trial >= kTrialsForBoth) break;
    const auto verdict =
        Rounds<Mutated>(static_cast<std::uint64_t>(trial), Tempo::kMixed, Rules(), bend).run(3);
    if (verdict && first.emplace(verdict->oracle, trial + 1).second && words.empty()) {
      words = verdict->words;
    }
  }
  EXPECT_FALSE(first.empty()) << GetParam() << " survives";
  std::cout << GetParam();
  for (const auto& [oracle, trials] : first) std::cout << " | " << oracle << " " << trials;
  std::cout << " | " << words << "\n";
}

// The harness around them is none.
TEST(CudaMutants, ADeviceThatIsNotBentSurvivesTheSameHunt) {
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    const auto straight = [](Labelled<CudaDevice> device) {
      return Mutated(std::move(device), std::nullopt);
    };
    const auto verdict = Rounds<Mutated>(trial, Tempo::kMixed, Rules(), straight).run(3);
    ASSERT_FALSE(verdict) << "trial " << trial << ": " << verdict->words;
  }
}

INSTANTIATE_TEST_SUITE_P(Core, CudaMutant, testing::ValuesIn(mutants()), [](const auto& each) {
  std::string text = each.param.name;
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return text;
});

}  // namespace
}  // namespace ferry::real
