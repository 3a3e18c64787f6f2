// What a simulated run depends on, beside the program and the hardware: the policy, which is the
// offloader's options, or none, and what is recomputed; the training; the memory there is; what is
// checked; and who looks on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "formats/alloc_conf.h"
#include "formats/limits.h"
#include "formats/memory_snapshot.h"
#include "formats/plan.h"
#include "shared/adaptors/bent.h"
#include "shared/adaptors/observed.h"
#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "shared/seam/rules.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "sim/gpu/run_recorder.h"
#include "sim/gpu/step_trace.h"
#include "sim/program/tape.h"
#include "sim/run/training/scheduler.h"
#include "sim/run/training/selective.h"
#include "sim/run/training/training.h"

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

}  // namespace ferry::sim
