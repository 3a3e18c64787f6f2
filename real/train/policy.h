// A policy: handles the tensors that autograd saves, a step at a time.
//
//   keep            nothing of Ferry's: plain LibTorch, the measure for the others
//   checkpoint      none either: the model's blocks are checkpoints
//   offload         ferry::OffloadGuard: whatever is large enough moves
//   budget, mixed   the same, by a plan, which also says which blocks are recomputed
//
// The stages of a pipeline that is trained by a plan of its own have each their policy, and what
// moves there is moved by the pipeline: then this reports it, and guards nothing.
//
// The decision log is written as it comes, a line a decision, and both it and the trace appear when
// the training ends, whole or not at all. Of a pipeline's plan each device that moves something
// has a log, FILE.0 that of device 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "ferry/offload.h"
#include "formats/atomic_file.h"
#include "real/train/options.h"

namespace ferry::real::train {

class Workload;

// Of all that the options say; a plan's are its own.
OffloadOptions offload_options(const Options& options);

class Policy {
 public:
  // Throws InputError if the plan cannot be read, and what ferry::Offload throws.
  Policy(const Options& options, Workload& workload);

  // Lives around one forward and its backward; null if there is nothing to guard.
  std::unique_ptr<OffloadGuard> guard();

  // Call after a step: takes the decisions, and returns the bytes that it moved, both ways.
  std::int64_t end_step();

  // Writes the decision log and the trace. Call it once.
  void finish();

 private:
  struct Moving {
    Offload offload;
    std::unique_ptr<AtomicFile> decisions;  // none: they are not asked for
  };
  void add(Offload offload, const std::filesystem::path& decisions);
  static void write_decisions(Moving& moving);

  std::vector<Moving> moving_;
  bool guards_ = false;  // the only one
  std::filesystem::path trace_;
  std::int64_t moved_bytes_ = 0;
};

}  // namespace ferry::real::train
