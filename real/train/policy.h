// A policy: handles the tensors that autograd saves, a step at a time.
//
//   keep            nothing of Ferry's: plain LibTorch, the measure for the others
//   checkpoint      none either: the model's blocks are checkpoints
//   offload         ferry::OffloadGuard: whatever is large enough moves
//   budget, mixed   the same, by a plan, which also says which blocks are recomputed
//
// The decision log is written as it comes, a line a decision, and both it and the trace appear when
// the training ends, whole or not at all.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "ferry/offload.h"
#include "formats/atomic_file.h"
#include "real/train/options.h"

namespace ferry::real::train {

class Policy {
 public:
  // Throws InputError if the plan cannot be read, and what ferry::Offload throws.
  Policy(const Options& options, const torch::nn::Module& module);

  // Lives around one forward and its backward; null if there is nothing to guard.
  std::unique_ptr<OffloadGuard> guard();

  // Call after a step: takes the decisions, and returns the bytes that it moved, both ways.
  std::int64_t end_step();

  // Writes the decision log and the trace. Call it once.
  void finish();

 private:
  void write_decisions();

  std::optional<Offload> offload_;
  std::optional<AtomicFile> decisions_;
  std::filesystem::path trace_;
  std::int64_t moved_bytes_ = 0;
};

}  // namespace ferry::real::train
