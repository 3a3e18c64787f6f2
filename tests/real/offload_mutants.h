// The mutants of offloading: each step with each bend that applies, and each rule.
//
// Those of checkpoints are left out. Their steps order streams around a recompute, and their rules
// are a checkpointer's: the hunts of tests/real/cpu and tests/real/cuda run no checkpoints, so
// there they cannot show. tests/verify/core hunts them all, tests/real/api/checkpoint those
// that LibTorch shows on a CPU, and tests/real/cuda_autograd all of them, those of pipelines among
// them, on the virtual GPU.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "shared/adaptors/bent.h"
#include "shared/seam/rules.h"
#include "shared/seam/step.h"

namespace ferry::real {

inline constexpr Step kFirstCheckpointStep = Step::kRecomputed;
inline constexpr Rule kFirstCheckpointRule = Rule::kOuterInputs;

inline std::vector<Mutation> offload_mutations() {
  std::vector<Mutation> all;
  for (std::size_t step = 0; step < static_cast<std::size_t>(kFirstCheckpointStep); ++step) {
    for (const Bend bend : {Bend::kDrop, Bend::kOtherStream, Bend::kDelay, Bend::kStale}) {
      const Mutation mutation{static_cast<Step>(step), bend};
      if (applies(mutation)) all.push_back(mutation);
    }
  }
  return all;
}

inline std::vector<Rule> offload_rules() {
  std::vector<Rule> all;
  for (std::size_t rule = 0; rule < static_cast<std::size_t>(kFirstCheckpointRule); ++rule) {
    all.push_back(static_cast<Rule>(rule));
  }
  return all;
}

inline std::string name_of(Mutation mutation) {
  return std::string(name(mutation.step)) + ": " + std::string(name(mutation.bend));
}

}  // namespace ferry::real
