// The offloader on the CUDA device over the virtual runtime: random rounds, at every tempo. And its
// mutants, which take one step wrongly: they give wrong bytes or a hazard.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/real/cuda/rounds.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;
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

class CudaMutant : public testing::TestWithParam<Mutation> {};

// By wrong bytes at least, or by the checkers where bytes tell nothing.
TEST_P(CudaMutant, IsCaught) {
  const auto bend = [](Labelled<CudaDevice> device) {
    return Mutated(std::move(device), GetParam());
  };
  expect_caught(GetParam(), {.most = 4000, .for_both = 300}, [&](std::uint64_t trial) {
    return Rounds<Mutated>(trial, Tempo::kMixed, Rules(), bend).run(3);
  });
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

INSTANTIATE_TEST_SUITE_P(Core, CudaMutant, testing::ValuesIn(offload_mutations()),
                         mutant_test_name);

}  // namespace
}  // namespace ferry::real
