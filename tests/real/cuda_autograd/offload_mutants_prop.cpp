// The core's offloader over LibTorch's own autograd on the virtual GPU: random graphs at every
// tempo. And its mutants, which take one step wrongly: they give wrong bytes, or a hazard in the
// log.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "tests/real/cuda_autograd/offload_trial.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;

class OffloadRandomGraphs : public testing::TestWithParam<Tempo> {};

TEST_P(OffloadRandomGraphs, GiveThePlainBits) {
  OffloadStatistics sum;
  for (std::uint64_t trial = 0; trial < 120; ++trial) {
    const Trial tried = attempt(trial, GetParam(), false);
    ASSERT_FALSE(tried.verdict) << "trial " << trial << ": " << tried.verdict->oracle << ": "
                                << tried.verdict->words;
    sum.offloaded_count += tried.statistics.offloaded_count;
    sum.prefetched_count += tried.statistics.prefetched_count;
    sum.shared += tried.statistics.shared;
    sum.stash_hits += tried.statistics.stash_hits;
    sum.target_hits += tried.statistics.target_hits;
    sum.vain_count += tried.statistics.vain_count;
  }
  for (const std::int64_t count : {sum.offloaded_count, sum.prefetched_count, sum.shared,
                                   sum.stash_hits, sum.target_hits, sum.vain_count}) {
    EXPECT_GT(count, 20);
  }
}

std::string tempo_name(const testing::TestParamInfo<Tempo>& chosen) {
  constexpr std::array<const char*, 4> kNames = {"Eager", "Lazy", "Random", "Mixed"};
  return kNames[static_cast<std::size_t>(chosen.param)];
}
INSTANTIATE_TEST_SUITE_P(At, OffloadRandomGraphs,
                         testing::Values(Tempo::kEager, Tempo::kLazy, Tempo::kRandom,
                                         Tempo::kMixed),
                         tempo_name);

class OffloadMutant : public testing::TestWithParam<Mutation> {};

TEST_P(OffloadMutant, IsCaught) {
  expect_caught(GetParam(), {.most = 400, .for_both = 40}, [](std::uint64_t trial) {
    return attempt(trial, Tempo::kMixed, true, GetParam()).verdict;
  });
}

INSTANTIATE_TEST_SUITE_P(Core, OffloadMutant, testing::ValuesIn(offload_mutations()),
                         mutant_test_name);

}  // namespace
}  // namespace ferry::real
