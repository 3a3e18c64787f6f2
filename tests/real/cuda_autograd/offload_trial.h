// One trial of the core's offloader over LibTorch's own autograd on the virtual GPU: a few rounds
// of random graphs, with the core as it is or with a mutant. The verdict is the first of: an error,
// bits that a plain run does not have, an objection to the log, something that is left.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "real/autograd/torch_autograd.h"
#include "shared/adaptors/bent.h"
#include "shared/offload/offloader.h"
#include "shared/seam/hooks.h"
#include "tests/real/cuda/labelled.h"
#include "tests/real/cuda/rounds.h"
#include "tests/real/cuda_autograd/random_graph.h"
#include "tests/real/verdict.h"

namespace ferry::real {

inline constexpr int kRounds = 3;

// What a plain run gives.
inline const Tensors& expected_of(std::uint64_t trial) {
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
inline bool soon_empty(const Core& offloader) {
  for (int waited_ms = 0; waited_ms < 1000 && !offloader.empty(); ++waited_ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return offloader.empty();
}

struct Trial {
  std::optional<Verdict> verdict;
  OffloadStatistics statistics;
};

// `wrong`: what is tried is a mutant.
inline Trial attempt(std::uint64_t trial, vgpu::Tempo tempo, bool wrong,
                     std::optional<Mutation> mutation = {}, Rules rules = {}) {
  const Tensors& plain = expected_of(trial);
  VirtualWorld world(tempo, trial);
  CudaDevice device({.index = 0});
  Dice draw(trial * 2 + 1);
  CoreOptions options = drawn_options(draw, wrong);
  options.min_bytes = 1;
  using Mutated = Bent<Labelled<CudaDevice>>;
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
  const std::string differs = difference(ours, plain);
  const std::string objection = hazard(world);
  if (!differs.empty()) {
    tried.verdict = Verdict{"bytes", differs + "; " + objection};
  } else if (!objection.empty()) {
    tried.verdict = Verdict{"log", objection};
  } else if (!soon_empty(offloader)) {
    tried.verdict = Verdict{"leak", "the core holds something"};
  }
  return tried;
}

}  // namespace ferry::real
