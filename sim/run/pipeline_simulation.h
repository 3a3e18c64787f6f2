// Simulates one step of a program in the stages of a pipeline: the memory of each GPU, the step's
// time, and whether it was safe.
//
// The core's ScheduledPipeline (shared/pipeline/scheduled_pipeline.h) runs the stages' codes on a
// machine with several devices. The program is one micro-batch: each of the m micro-batches runs
// all of it, on the same inputs, and the gradients accumulate. Stage s runs on device s % n. Equal
// options give the same results, byte for byte.
//
// A stage's policy decides what it keeps for backward: everything; or only its inputs, which stay
// or move to the host, and it is recomputed; or its saved tensors, which move to the host through
// an offloader for each device.
//
// Not modelled: the exchange of gradients of a global that several stages have (tied weights: each
// stage's copy gets its part), a data-parallel all-reduce, and the optimizer's time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/stages.h"
#include "scenarios/hardware.h"
#include "shared/pipeline/schedule.h"
#include "shared/pipeline/stage.h"
#include "shared/pipeline/stage_policy.h"
#include "shared/seam/options.h"
#include "sim/run/simulation.h"

namespace ferry::sim {

// The offloader's default options. Sources leave the device soon, because the backward of the
// micro-batch comes a whole schedule later.
inline CoreOptions pipeline_offload_options() {
  CoreOptions options;
  options.window_bytes = std::int64_t{64} << 20;
  return options;
}

struct PipelineOptions {
  ScheduleKind schedule = ScheduleKind::kOneForwardOneBackward;
  std::uint32_t devices = 1;  // each has equally many of the program's stages
  std::size_t microbatches = 1;
  // Selects the micro-batches of a checkpointed stage that are recomputed.
  CheckpointMode checkpoint = CheckpointMode::kAlways;
  std::vector<StagePolicy> policies;  // by stage; past the end: keep
  CoreOptions offload = pipeline_offload_options();
  // A value that is used two or more stages later goes there directly. If false, it passes through
  // the stages between.
  bool portals = true;
  Optimizer optimizer = Optimizer::kNoOptimizer;
  bool check = true;
  std::int64_t device_bytes = 0;  // capacity of each device; 0: unlimited
  AllocConf alloc_conf;           // of each device's memory
  Rules rules;                    // used by the tests of the core
  std::vector<StreamOpConsumer*> consumers;

  StagePolicy policy(std::size_t stage) const {
    return stage < policies.size() ? policies[stage] : StagePolicy::kKeep;
  }
};

struct DeviceRun {
  std::int64_t peak_bytes = 0;  // allocated, in rounded blocks
  std::int64_t reserved_bytes = 0;
  Time compute_ns = 0;
  std::int64_t bubble_permille = 0;  // the share of the step in which it does not compute, rounded
  std::int64_t d2h_bytes = 0;
  std::int64_t h2d_bytes = 0;
  std::int64_t peer_bytes = 0;  // copied from other devices
};

struct PipelineSimulation {
  Time step_ns = 0;
  std::vector<DeviceRun> devices;
  std::int64_t host_peak_bytes = 0;  // pinned bytes
  std::int64_t operations = 0;
  std::uint64_t digest = 0;  // of the times of all operations
  std::vector<check::Hazard> hazards;
  std::vector<std::uint64_t> gradients;  // contents by global, if checked; 0: none
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  Leftovers leftovers;

  std::int64_t peak_bytes() const;  // of the device with the most; so are the reserved bytes
  std::int64_t reserved_bytes() const;
  std::int64_t bubble_permille() const;  // over all devices together
  bool is_safe() const { return hazards.empty() && errors.empty() && !leftovers.any(); }
};

// Throws std::invalid_argument if the devices cannot have equally many stages, or if the schedule
// does not allow that many stages or micro-batches.
PipelineSimulation simulate_pipeline(const StagedProgram& staged, const Hardware& hardware,
                                     const PipelineOptions& options);

}  // namespace ferry::sim
