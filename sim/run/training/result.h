// What a simulated run comes to: its memory, its time, and whether it was safe; of a training, its
// last step's.
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
  KindBytes peak_kinds;                     // what these bytes are
  std::int64_t device_requested_bytes = 0;  // the peak of what was asked for, not rounded
  std::int64_t device_reserved_bytes = 0;
  std::int64_t host_peak_bytes = 0;  // pinned bytes
  Time step_ns = 0;                  // until all work is done
  Time optimizer_ns = 0;             // the part that the optimizer's kernels took
  Time compute_ns = 0;               // the part spent computing
  Time slowed_by_copies_ns = 0;      // of that, what copies took of the memory's rate
  // Time without computing because a stream or, after the last kernel, the step's end waited for a
  // copy.
  Time compute_idle_for_copies_ns = 0;
  Time d2h_ns = 0;
  Time h2d_ns = 0;
  std::int64_t d2h_bytes = 0;
  std::int64_t h2d_bytes = 0;
  Resident resident;  // of what moves: saved tensors that were on the device all the same
  // Peak of blocks that were freed while a stream might still use them (record_stream): not
  // allocated, and nobody's to reuse.
  std::int64_t deferred_peak_bytes = 0;
  std::int64_t operations = 0;  // operations on streams, in all steps
  std::uint64_t digest = 0;     // of all operations' times, in all steps
  OffloadStatistics statistics;
  CheckpointStatistics checkpoints;
  ReplayStatistics replays;
  std::vector<check::Hazard> hazards;
  std::vector<std::uint64_t> gradients;  // contents by global, if checked; 0: none
  std::vector<ProgramError> errors;
  std::vector<std::string> warnings;
  std::int64_t out_of_memory = 0;       // failed allocations
  std::int64_t num_alloc_retries = 0;   // times that the pool gave its cache back, in all steps
  std::int64_t last_alloc_retries = 0;  // and in the last one
  Leftovers leftovers;

  // 1 - idle / copying, in thousandths, over the whole step; none if nothing was copied.
  std::optional<std::int64_t> overlap_permille() const;
};

// Of its errors, in their order.
std::vector<std::string> messages(const Simulation& run);

}  // namespace ferry::sim
