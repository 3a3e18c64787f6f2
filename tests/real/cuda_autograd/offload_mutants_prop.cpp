// The core's offloader over LibTorch's own autograd on the virtual GPU: random graphs at every
// tempo. And its mutants, which take one step wrongly: they give wrong bytes, or a hazard in the
// log.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "real/autograd/torch_autograd.h"
#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "shared/seam/hooks.h"
#include "tests/real/cuda/labelled.h"
#include "tests/real/cuda/rounds.h"
#include "tests/real/cuda_autograd/random_graph.h"
#include "tests/real/mutant_hunt.h"
#include "tests/real/offload_mutants.h"
#include "tests/real/verdict.h"

namespace ferry::real {
namespace {

using vgpu::Tempo;
using Mutated = Bent<Labelled<CudaDevice>>;

constexpr int kRounds = 3;

// What a plain run gives.
const Tensors& expected(std::uint64_t trial) {
  static std::map<std::uint64_t, Tensors> known;
  auto& bits = known[trial];
  if (bits.empty()) {
    VirtualWorld world;
    RandomGraph graph(trial, world);
    for (int i = 0; i < kRounds; ++i) {
      graph.forward();
      graph.backward();
    }
    bits = graph.results();
    bits.push_back(torch::zeros({}));  // so that it is known, though nothing was asked for
  }
  return bits;
}

// What a failed backward left in the queues of the engine's threads goes when they come to it.
template <class Core>
bool soon_empty(const Core& offloader) {
  for (int waited_ms = 0; waited_ms < 1000 && !offloader.empty(); ++waited_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return offloader.empty();
}

struct Trial {
  std::optional<Verdict> verdict;
  OffloadStatistics statistics;
};

Trial attempt(std::uint64_t trial, Tempo tempo, std::optional<Mutation> mutation, Rules rules) {
  const Tensors& plain = expected(trial);
  VirtualWorld world(tempo, trial);
  CudaDevice device({.index = 0});
  Dice draw(trial * 2 + 1);
  CoreOptions options = drawn_options(draw, mutation.has_value());
  options.bytes_min = 1;
  Offloader<Mutated, TorchAutograd> offloader(Mutated(Labelled<CudaDevice>(device), mutation),
                                              TorchAutograd(), options, rules);
  Trial tried;
  Tensors ours;
  try {
    RandomGraph graph(trial, world);
    for (int i = 0; i < kRounds; ++i) {
      offloader.begin_run();
      TorchAutograd autograd;
      const HooksGuard<TorchAutograd> guard(autograd, offloader.hooks());
      graph.forward();
      graph.backward();
    }
    ours = graph.results();
    ours.push_back(torch::zeros({}));
  } catch (const std::exception& error) {
    tried.verdict = Verdict{"error", error.what()};
    return tried;
  }
  world.finish();
  tried.statistics = offloader.statistics();
  const std::string wrong = difference(ours, plain);
  const std::string objection = hazard(world);
  if (!wrong.empty()) {
    tried.verdict = Verdict{"bytes", wrong + "; " + objection};
  } else if (!objection.empty()) {
    tried.verdict = Verdict{"log", objection};
  } else if (!soon_empty(offloader)) {
    tried.verdict = Verdict{"leak", "the core holds something"};
  }
  return tried;
}

class OffloadRandomGraphs : public testing::TestWithParam<Tempo> {};

TEST_P(OffloadRandomGraphs, GiveThePlainBits) {
  OffloadStatistics sum;
  for (std::uint64_t trial = 0; trial < 120; ++trial) {
    const Trial tried = attempt(trial, GetParam(), std::nullopt, Rules());
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
    return attempt(trial, Tempo::kMixed, GetParam(), Rules()).verdict;
  });
}

INSTANTIATE_TEST_SUITE_P(Core, OffloadMutant, testing::ValuesIn(offload_mutations()),
                         mutant_test_name);

}  // namespace
}  // namespace ferry::real
