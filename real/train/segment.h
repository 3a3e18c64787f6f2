// The blocks of a model, as calls that a policy or a plan can recompute.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <utility>

#include "ferry/checkpoint.h"

namespace ferry::real::train {

// Plain: LibTorch's own calls. All: each block is a checkpoint (under a plan: as it decides).
// Alternate: every second one is.
enum class Segments : std::uint8_t { kPlain, kAll, kAlternate };

template <class Block>
torch::Tensor run_block(Segments segments, std::size_t ordinal, Block& block, torch::Tensor x) {
  const bool checkpoint =
      segments == Segments::kAll || (segments == Segments::kAlternate && ordinal % 2 == 0);
  if (checkpoint) return ferry::checkpoint(block, std::move(x));
  return block->forward(std::move(x));
}

}  // namespace ferry::real::train
