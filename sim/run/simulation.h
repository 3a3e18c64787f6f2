// One simulated run of a program: its memory, its time, and whether it was safe. A run is a step,
// or some steps of a training; what is told then is of the last one.
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

#include "formats/alloc_conf.h"
#include "formats/limits.h"
#include "formats/memory_snapshot.h"
#include "formats/plan.h"
#include "formats/program.h"
#include "scenarios/hardware.h"
#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/replay/replay_state.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "shared/seam/rules.h"
#include "sim/check/hazard.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/run_recorder.h"
#include "sim/gpu/step_trace.h"
#include "sim/program/tape.h"
#include "sim/run/scheduler.h"
#include "sim/run/selective.h"
#include "sim/run/training.h"

namespace ferry::sim {

// Looks on while the offloader is given tensors to pack, and is asked to unpack them.
class HooksWatch {
 public:
  virtual ~HooksWatch() = default;
  // Returns hooks that do as these do.
  virtual std::shared_ptr<Hooks<Tensor>> watch(std::shared_ptr<Hooks<Tensor>> hooks) = 0;
  virtual void begin_forward() = 0;
};

struct SimulationOptions {
  std::optional<CoreOptions> offload;  // none: keep
  // A scheduler in the core's place; `offload` is then ignored.
  std::function<std::unique_ptr<Scheduler>(SimDevice, SimAutograd)> scheduler;
  // The plan of each call of the main code; none: checkpoints run as the program states.
  std::shared_ptr<const SegmentPlan> segments;
  // Spans of operators in each forward (formats/spans.h). A simulation throws
  // std::invalid_argument where the program has no such spans.
  std::vector<PlanSpan> spans;
  std::shared_ptr<const OpPolicies> selective;  // of every checkpoint; null: none is selective
  Training training;
  // Of CUBLAS_WORKSPACE_CONFIG; none: the card's default. A card that is no GPU has no workspaces.
  std::optional<std::int64_t> workspace_bytes;
  bool check = true;
  bool check_order = true;         // if checked: happens-before and lifetimes, not the values alone
  bool segments_as_calls = false;  // the program's checkpoints and spans run as other calls do
  bool reuse_at_free = false;      // sim/check/happens_before.h
  std::int64_t device_bytes = 0;   // capacity, beside the context; 0: unlimited
  AllocConf alloc_conf;            // of the device's memory
  std::int64_t host_bytes = 0;     // capacity; 0: unlimited
  HostPoolKind host_pool = HostPoolKind::kFerrys;
  std::int64_t work_most = limits::kWork;  // limit on work (formats/program_work.h)
  // Used by the tests of the core.
  Rules rules;
  std::optional<Mutation> mutation;
  std::shared_ptr<FaultPoint> fault;  // not together with a mutation
  choices::Choices* choices =
      nullptr;  // decides open choices, and calls that fail; null: the usual ways
  WorldFault world = WorldFault::kNoFault;
  // Of the program on this hardware, for several runs of it (prepare()); null: the run makes it.
  std::shared_ptr<const Prepared> prepared;
  std::vector<StreamOpConsumer*> consumers;
  HooksWatch* hooks_watch = nullptr;     // of the offloader's hooks; not owned, null: nobody
  std::vector<TaskWatch*> task_watches;  // not owned
  StepTrace* trace = nullptr;            // is given what the streams do; not owned, null: nobody
  RunRecorder* recorder = nullptr;       // records the last step; not with `trace`; null: nobody
  MemorySnapshot* memory = nullptr;      // of the device, at the end; not owned, null: none
};

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

// For simulate(), whatever the workspaces. Not `takes_memory`: for tapes whose kernels take none.
std::shared_ptr<const Prepared> prepare(const Program& program, const Hardware& hardware,
                                        bool takes_memory = true);

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options);

// A fault point that asks `choices` at each step if it fails.
std::shared_ptr<FaultPoint> fault_of(choices::Choices& choices);

}  // namespace ferry::sim
