// Runs the blocks of a model of `ferry train`, each as a checkpoint or plainly. The options or the
// policy choose; with a plan, checkpoints are the blocks that it can recompute.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>

#include "ferry/checkpoint.h"

namespace ferry::real::train {

// kPlain: no block is a checkpoint. kAll: each one is (with a plan, the plan decides). kAlternate:
// every second one is.
enum class Segments : std::uint8_t { kPlain, kAll, kAlternate };

template <class Block>
torch::Tensor run_block(Segments segments, std::size_t ordinal, Block& block, torch::Tensor x) {
  const bool checkpoint =
      segments == Segments::kAll || (segments == Segments::kAlternate && ordinal % 2 == 0);
  if (checkpoint) return ferry::checkpoint(block, std::move(x));
  return block->forward(std::move(x));
}

}  // namespace ferry::real::train
