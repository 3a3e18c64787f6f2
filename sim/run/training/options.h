// The options of a simulated run. With the program and the hardware, they are all that it depends
// on: the policy (the offloader's options, or none, and what is recomputed), the training, the
// available memory, what is checked, and who observes the run.
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

// Observes the offloader's hooks while they pack and unpack tensors.
class HooksWatch {
 public:
  virtual ~HooksWatch() = default;
  // Returns hooks that do the same as these.
  virtual std::shared_ptr<Hooks<Tensor>> watch(std::shared_ptr<Hooks<Tensor>> hooks) = 0;
  virtual void begin_forward() = 0;
};

struct SimulationOptions {
  std::optional<CoreOptions> offload;  // none: keep
  // A scheduler in place of the core. `offload` is then ignored.
  std::function<std::unique_ptr<Scheduler>(SimDevice, SimAutograd)> scheduler;
  // The plan for each call of the main code; none: checkpoints run as the program says.
  std::shared_ptr<const SegmentPlan> segments;
  // Spans of operators in each forward (formats/spans.h). A simulation throws std::invalid_argument
  // if the program does not have such spans.
  std::vector<PlanSpan> spans;
  std::shared_ptr<const OpPolicies> selective;  // for every checkpoint; null: none is selective
  Training training;
  // The size in CUBLAS_WORKSPACE_CONFIG; none: the card's default. A card that is not a GPU has no
  // workspaces.
  std::optional<std::int64_t> workspace_bytes;
  bool check = true;
  bool check_order = true;         // if checked: happens-before and lifetimes too, not only values
  bool segments_as_calls = false;  // the program's checkpoints and spans run like other calls
  bool reuse_at_free = false;      // see sim/check/happens_before.h
  std::int64_t device_bytes = 0;   // capacity without the context; 0: unlimited
  AllocConf alloc_conf;            // of the device's memory
  std::int64_t host_bytes = 0;     // capacity; 0: unlimited
  HostPoolKind host_pool = HostPoolKind::kFerrys;
  std::int64_t work_most = limits::kWork;  // limit on work (formats/program_work.h)
  // Used by the tests of the core.
  Rules rules;
  std::optional<Mutation> mutation;
  std::shared_ptr<FaultPoint> fault;  // not together with a mutation
  choices::Choices* choices =
      nullptr;  // decides open choices and failing calls; null: the usual answers
  WorldFault world = WorldFault::kNoFault;
  // Made by prepare() for several runs of the program on this hardware; null: the run makes it.
  std::shared_ptr<const Prepared> prepared;
  std::vector<StreamOpConsumer*> consumers;
  HooksWatch* hooks_watch = nullptr;     // observes the offloader's hooks; not owned, may be null
  std::vector<TaskWatch*> task_watches;  // not owned
  StepTrace* trace = nullptr;            // gets what the streams do; not owned, may be null
  RunRecorder* recorder = nullptr;       // records the last step; not with `trace`; may be null
  MemorySnapshot* memory = nullptr;      // gets the final snapshot; not owned, may be null
};

}  // namespace ferry::sim
