// One simulated run of a program: what it needs, what it takes, and whether it was safe.
//
// The policy is the offloader's options, or none, and what is recomputed. A run is checked, unless
// that is switched off for speed: happens-before over device and host memory, lifetimes, the
// contents of every saved tensor when it comes back, and what is left at the end. Equal inputs give
// equal bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/limits.h"
#include "formats/program.h"
#include "scenarios/hardware.h"
#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "shared/seam/rules.h"
#include "sim/check/hazard.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/program/tape.h"
#include "sim/run/scheduler.h"

namespace ferry::sim {

// Its state is part of the peak: momentum is one tensor per parameter, adamw two, in the
// parameter's dtype, as torch.optim keeps them. SGD without momentum has none.
enum class Optimizer : std::uint8_t { kNoOptimizer, kSgd, kMomentum, kAdamW };

struct SimulationOptions {
  std::optional<CoreOptions> offload;  // none: keep
  // Another one in the core's place; then `offload` means nothing.
  std::function<std::unique_ptr<Scheduler>(SimDevice, SimAutograd)> scheduler;
  // Of each call that the main code makes; none: the program's checkpoints are as it says.
  std::shared_ptr<const SegmentPlan> segments;
  Optimizer optimizer = Optimizer::kNoOptimizer;
  bool check = true;
  std::int64_t device_bytes = 0;           // capacity; 0: unlimited, so that the peak is told
  std::int64_t host_bytes = 0;             // likewise
  std::int64_t work_most = limits::kWork;  // formats/program_work.h
  // For the tests of the core.
  Rules rules;
  std::optional<Mutation> mutation;
  std::shared_ptr<FaultPoint> fault;  // not with a mutation
  choices::Choices* choices =
      nullptr;  // of what is left open, calls that fail too; none: the usual ways
  WorldFault world = WorldFault::kNoFault;
  std::vector<StreamOpConsumer*> consumers;
};

struct Leftovers {
  std::int64_t storages = 0;  // beyond globals, gradients and the optimiser's
  std::int64_t events = 0;
  std::int64_t host_bytes = 0;  // in use
  bool core = false;            // the offloader or a checkpoint holds something
  bool any() const { return storages != 0 || events != 0 || host_bytes != 0 || core; }
};

struct Simulation {
  std::int64_t device_peak_bytes = 0;  // allocated, in rounded blocks
  std::int64_t device_reserved_bytes = 0;
  std::int64_t host_peak_bytes = 0;  // pinned
  Time step_ns = 0;                  // until everything given is done
  Time compute_ns = 0;               // of that, computing
  // Nothing computed, for something waited for a copy: a stream or, behind the last kernel, the
  // step's end.
  Time compute_idle_for_copies_ns = 0;
  Time d2h_ns = 0;
  Time h2d_ns = 0;
  std::int64_t d2h_bytes = 0;
  std::int64_t h2d_bytes = 0;
  std::int64_t operations = 0;  // on streams
  std::uint64_t digest = 0;     // of all times
  OffloadStatistics statistics;
  CheckpointStatistics checkpoints;
  std::vector<check::Hazard> hazards;
  std::vector<std::uint64_t> gradients;  // contents by global; 0: none. Where checked.
  std::vector<ProgramError> errors;
  std::vector<std::string> warnings;
  std::int64_t out_of_memory = 0;  // allocations that failed
  Leftovers leftovers;

  // 1 - idle / copying, in thousandths, of the whole step; none where nothing was copied.
  std::optional<std::int64_t> overlap_permille() const;
};

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options);

// Asks at each step whether it fails.
std::shared_ptr<FaultPoint> fault_of(choices::Choices& choices);

}  // namespace ferry::sim
