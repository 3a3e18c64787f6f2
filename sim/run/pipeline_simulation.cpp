// Implements pipeline_simulation.h: runs the stages of a step on a tape, and reads the results.
#include "sim/run/pipeline_simulation.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "shared/offload/offloader.h"
#include "shared/pipeline/scheduled_pipeline.h"
#include "sim/gpu/device.h"
#include "sim/gpu/workers.h"
#include "sim/run/core.h"
#include "sim/run/stage_crossings.h"
#include "sim/run/training/hardware_model.h"
#include "sim/run/training/permille.h"
#include "sim/run/training/run_parts.h"
#include "sim/run/training/segments.h"

namespace ferry::sim {

namespace {

using ValueList = std::vector<Value>;
using StageFunction = PipelineStage<SimAutograd>::Function;

std::vector<std::uint32_t> device_of_global(const StagedProgram& staged, std::uint32_t devices) {
  std::vector<std::uint32_t> device(staged.stage_of_global);
  for (std::uint32_t& stage : device) stage %= devices;
  return device;
}

// The stages of one step, run on a tape.
class Stages {
 public:
  Stages(const StagedProgram& staged, Machine& machine, Tape& tape, const PipelineOptions& options)
      : staged_(staged),
        machine_(machine),
        tape_(tape),
        options_(options),
        crossings_(stage_crossings(staged, options.portals)) {
    for (std::uint32_t d = 0; d < options.devices; ++d) devices_.emplace_back(machine, d);
  }

  // Runs the step. Throws what a stage throws. The offloaders' warnings go to `result`.
  void step(PipelineSimulation& result) {
    make_offloaders(result);
    Segments<SimDevice> segments(machine_, devices_, tape_.autograd(), options_.rules);
    tape_.set_segments(&segments);
    std::exception_ptr failure;
    try {
      run_step();
    } catch (...) {
      failure = std::current_exception();
    }
    tape_.set_segments(nullptr);
    tape_.drop_frames();
    result.leftovers.core = !segments.empty();
    for (const auto& offloader : offloaders_) {
      if (offloader) result.leftovers.core |= !offloader->empty();
    }
    if (failure) std::rethrow_exception(failure);
  }

 private:
  using Offloads = Offloader<SimDevice, SimAutograd>;

  std::size_t device_of(std::size_t stage) const { return stage % devices_.size(); }

  void make_offloaders(PipelineSimulation& result) {
    offloaders_.resize(devices_.size());
    CoreOptions core = options_.offload;
    core.warn = [&result](const std::string& text) { result.warnings.push_back(text); };
    for (std::size_t stage = 0; stage < staged_.stages.size(); ++stage) {
      auto& offloader = offloaders_[device_of(stage)];
      if (!offloads(options_.policy(stage)) || offloader) continue;
      offloader.emplace(devices_[device_of(stage)], tape_.autograd(), core, options_.rules);
      const auto& globals = staged_.program.globals;
      for (std::size_t i = 0; i < globals.size(); ++i) {
        if (globals[i].kind != GlobalKind::kInput) offloader->exempt(tape_.globals()[i].tensor);
      }
    }
  }

  void run_step() {
    CorePipelineOptions core;
    core.checkpoint = options_.checkpoint;
    std::vector<StageFunction> functions;
    for (std::size_t stage = 0; stage < staged_.stages.size(); ++stage) {
      core.checkpointed_stages.push_back(runs_again(options_.policy(stage)));
      functions.push_back([this, stage](ValueList given) { return run(stage, std::move(given)); });
    }
    ScheduledPipeline pipeline(devices_, tape_.autograd(), SimWorkers(machine_),
                               std::move(functions), layout_of(crossings_), options_.schedule, core,
                               options_.rules);
    for (std::size_t stage = 0; stage < staged_.stages.size(); ++stage) {
      if (options_.policy(stage) != StagePolicy::kCheckpointOffload) continue;
      pipeline.save_inputs(stage, offloaders_[device_of(stage)]->hooks());
    }
    pipeline.step(std::vector<ValueList>(options_.microbatches),
                  [this](const ValueList& results, std::size_t) { return loss(results); });
  }

  // Runs one micro-batch of a stage on its device, from its inputs and popped skips to its results.
  ValueList run(std::size_t stage, ValueList given) {
    const StageCrossings& crossings = crossings_[stage];
    for (std::size_t i = 0; i < given.size(); ++i) {
      given[i] = as_made(std::move(given[i]), crossings.arriving[i].edge);
    }
    const auto tracker = current_skip_tracker(tape_.autograd());
    ValueList arguments;
    for (const std::size_t at : crossings.arguments) {
      arguments.push_back(at == StageCrossings::kNone ? Value() : given[at]);
    }
    for (const StageRoute& route : crossings.popped) {
      arguments[route.argument] = as_made(tracker->load(skip_name(route)), route.edge);
    }
    ValueList results = call(stage, std::move(arguments));
    if (stage + 1 == crossings_.size()) return results;
    for (const StageRoute& route : crossings.stashed) {
      tracker->save(skip_name(route), promised(results[route.result], route.edge));
    }
    ValueList leaving;
    for (const StageResult& value : crossings.leaving) {
      leaving.push_back(value.stage == stage ? promised(results[value.result], value.edge)
                                             : given[position(crossings.arriving, value)]);
    }
    return leaving;
  }

  ValueList call(std::size_t stage, ValueList arguments) {
    const CodeId code = staged_.stages[stage].code;
    const StagePolicy policy = options_.policy(stage);
    if (!offloads(policy)) return tape_.call(code, std::move(arguments));
    Offloads& offloader = *offloaders_[device_of(stage)];
    // When a checkpointed stage is recomputed, it uses its saved tensors at once, so they do not
    // move.
    if (policy == StagePolicy::kCheckpointOffload) {
      if (!tape_.autograd().grad_mode()) offloader.begin_run();
      return tape_.call(code, std::move(arguments));
    }
    offloader.begin_run();
    const HooksGuard<SimAutograd> guard(tape_.autograd(), offloader.hooks());
    return tape_.call(code, std::move(arguments));
  }

  static std::size_t position(const std::vector<StageResult>& list, const StageResult& value) {
    const auto at = std::find_if(list.begin(), list.end(), [&](const StageResult& each) {
      return each.stage == value.stage && each.result == value.result;
    });
    return static_cast<std::size_t>(at - list.begin());
  }

  // While a stage makes no graph, the core requests gradients of every value that may have one. The
  // program says which slots do.
  static Value as_made(Value value, bool edge) {
    if (!edge) value.edge = {};
    return value;
  }
  // A stage that will be recomputed has no edges yet, so a leaf stands for them.
  Value promised(const Value& value, bool edge) {
    if (!edge || value.edge || tape_.autograd().grad_mode()) return value;
    return tape_.autograd().leaf(value.tensor, true);
  }

  // A captured loss is only an edge. A scalar then stands for it, as the root.
  Value loss(const ValueList& results) {
    Value root = results.at(staged_.root);
    if (root.edge && !root.tensor) {
      static const auto scalar = std::make_shared<const Window>(Window{{}, {0, 4}});
      root.tensor = make_tensor(machine_.allocate(4, machine_.current_stream()), {scalar, 0},
                                machine_.new_version());
    }
    return root;
  }

  const StagedProgram& staged_;
  Machine& machine_;
  Tape& tape_;
  const PipelineOptions& options_;
  const std::vector<StageCrossings> crossings_;
  std::vector<SimDevice> devices_;
  std::vector<std::optional<Offloads>> offloaders_;  // by device, if a stage of it needs one
};

void read_devices(Machine& machine, PipelineSimulation& result) {
  result.step_ns = machine.drain();
  for (std::uint32_t d = 0; d < machine.devices(); ++d) {
    const DeviceStats stats = machine.device_stats(d);
    DeviceRun run;
    run.peak_bytes = machine.pool(d).stats().allocated_bytes.peak;
    run.reserved_bytes = machine.pool(d).stats().reserved_bytes.peak;
    run.compute_ns = stats.compute_busy_ns;
    const Time idle = result.step_ns - stats.compute_busy_ns;
    if (result.step_ns > 0) {
      run.bubble_permille = permille(idle, result.step_ns, Round::kNearest);
    }
    run.d2h_bytes = stats.d2h_bytes;
    run.h2d_bytes = stats.h2d_bytes;
    run.peer_bytes = stats.peer_bytes;
    result.devices.push_back(run);
  }
  result.host_peak_bytes = machine.host_pool().stats().pinned_bytes.peak;
  result.operations = machine.operations();
  result.digest = machine.engine().digest();
}

template <class Of>
std::int64_t most(const std::vector<DeviceRun>& devices, Of of) {
  std::int64_t most = 0;
  for (const DeviceRun& device : devices) most = std::max(most, of(device));
  return most;
}

}  // namespace

std::int64_t PipelineSimulation::peak_bytes() const {
  return most(devices, [](const DeviceRun& device) { return device.peak_bytes; });
}

std::int64_t PipelineSimulation::reserved_bytes() const {
  return most(devices, [](const DeviceRun& device) { return device.reserved_bytes; });
}

std::int64_t PipelineSimulation::bubble_permille() const {
  const WideTime all = WideTime{step_ns} * static_cast<WideTime>(devices.size());
  WideTime idle = all;
  for (const DeviceRun& device : devices) idle -= device.compute_ns;
  return all == 0 ? 0 : permille(idle, all, Round::kNearest);
}

PipelineSimulation simulate_pipeline(const StagedProgram& staged, const Hardware& hardware,
                                     const PipelineOptions& options) {
  PipelineSimulation result;
  if (options.devices == 0 || staged.stages.size() % options.devices != 0) {
    throw std::invalid_argument("expected the same number of stages on each device");
  }
  make_schedule(options.schedule, options.devices, staged.stages.size() / options.devices,
                options.microbatches);  // throws if it is impossible
  const Roofline times(hardware);
  Checkers checkers;
  MachineOptions limits = machine_options(hardware);
  limits.devices = options.devices;
  limits.device_bytes = options.device_bytes;
  limits.alloc_conf = options.alloc_conf;
  Machine machine(limits);
  if (options.check) machine.add_consumer(&checkers);
  for (StreamOpConsumer* consumer : options.consumers) machine.add_consumer(consumer);
  {
    check::Values* values = options.check ? &checkers.values() : nullptr;
    Tape tape(staged.program, machine, times, values, device_of_global(staged, options.devices));
    const auto state = optimizer_state(staged.program, options.optimizer, machine, tape);
    bool core = false;
    {
      Stages stages(staged, machine, tape, options);
      try {
        stages.step(result);
      } catch (const std::exception& error) {
        result.errors.emplace_back(error.what());
      }
      core = result.leftovers.core;
    }
    read_devices(machine, result);
    result.gradients = read_gradients(tape, values);
    result.leftovers = leftovers(machine, tape, state.size());
    result.leftovers.core = core;
    result.hazards = noticed(machine, tape);
  }
  result.hazards = checkers.hazards(std::move(result.hazards));
  return result;
}

}  // namespace ferry::sim
