// The results of a simulated run: its memory, its time, and whether it was safe. For a training
// they are those of the last step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/replay/replay_state.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/statistics.h"
#include "sim/check/hazard.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "sim/run/training/scheduler.h"

namespace ferry::sim {

struct Leftovers {
  std::int64_t storages = 0;  // beyond those of globals, gradients and the optimiser
  std::int64_t events = 0;
  std::int64_t host_bytes = 0;  // bytes in use
  bool core = false;            // the offloader, a checkpoint or a span holds something
  bool any() const { return storages != 0 || events != 0 || host_bytes != 0 || core; }
};

struct Simulation {
  std::int64_t device_peak_bytes = 0;       // allocated, in rounded blocks
  KindBytes peak_kinds;                     // these bytes by kind
  std::int64_t device_requested_bytes = 0;  // peak of the requested bytes, not rounded
  std::int64_t device_reserved_bytes = 0;
  std::int64_t host_peak_bytes = 0;  // pinned bytes
  Time step_ns = 0;                  // until all work is done
  Time optimizer_ns = 0;             // the part that the optimizer's kernels took
  Time compute_ns = 0;               // the part spent computing
  Time slowed_by_copies_ns = 0;      // of that, what copies added by using the memory
  // Time without computing because a stream (or, after the last kernel, the end of the step) waited
  // for a copy.
  Time compute_idle_for_copies_ns = 0;
  Time d2h_ns = 0;
  Time h2d_ns = 0;
  std::int64_t d2h_bytes = 0;
  std::int64_t h2d_bytes = 0;
  Resident resident;  // saved tensors that move, but were on the device
  // Peak of blocks that were freed while a stream might still use them (record_stream): they are
  // not allocated, and nobody can reuse them yet.
  std::int64_t deferred_peak_bytes = 0;
  std::int64_t operations = 0;  // operations on streams, in all steps
  std::uint64_t digest = 0;     // of the times of all operations, in all steps
  OffloadStatistics statistics;
  CheckpointStatistics checkpoints;
  ReplayStatistics replays;
  std::vector<check::Hazard> hazards;
  std::vector<std::uint64_t> gradients;  // contents by global, if checked; 0: none
  std::vector<ProgramError> errors;
  std::vector<std::string> warnings;
  std::int64_t out_of_memory = 0;       // failed allocations
  std::int64_t num_alloc_retries = 0;   // times that the pool gave its cache back, in all steps
  std::int64_t last_alloc_retries = 0;  // the same in the last step
  Leftovers leftovers;

  // 1 - idle / copying, in thousandths, over the whole step; none if nothing was copied.
  std::optional<std::int64_t> overlap_permille() const;
};

// Returns the messages of its errors, in order.
std::vector<std::string> messages(const Simulation& run);

}  // namespace ferry::sim
