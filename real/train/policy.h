// A policy handles the tensors that autograd saves in each step:
//
//   keep                 nothing: plain LibTorch, the reference for the others
//   checkpoint           nothing either: the blocks of the model are checkpoints
//   offload              ferry::OffloadGuard offloads every tensor that is large enough
//   offload-some, mixed  the same, by a plan, which also says which blocks are recomputed
//
// If a pipeline is trained by a plan, each stage has its own policy, and the pipeline itself
// offloads. This class then only reports it, and makes no guards.
//
// The decision log gets one line per decision during the training. The log and the trace appear
// when the training ends, and an error leaves no partial file. With a pipeline's plan each device
// that offloads has a log: FILE.0 is that of device 0.
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

// Returns the offload options of the command line. A plan has its own.
OffloadOptions offload_options(const Options& options);

class Policy {
 public:
  // Throws InputError if the plan cannot be read, and what ferry::Offload throws.
  Policy(const Options& options, Workload& workload);

  // Returns a guard for one forward and its backward; null if nothing is to be guarded.
  std::unique_ptr<OffloadGuard> guard();

  // Call it after a step. It takes the decisions, and returns the bytes copied in both directions.
  std::int64_t end_step();

  // Writes the decision log and the trace. Call it once.
  void finish();

 private:
  struct Moving {
    Offload offload;
    std::unique_ptr<AtomicFile> decisions;  // null if no log was requested
  };
  void add(Offload offload, const std::filesystem::path& decisions);
  static void write_decisions(Moving& moving);

  std::vector<Moving> moving_;
  bool guards_ = false;  // then moving_ has one element
  std::filesystem::path trace_;
  std::int64_t moved_bytes_ = 0;
};

}  // namespace ferry::real::train
