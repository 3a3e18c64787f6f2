// Implements run_training.h: sets up the machine, the tape and the checkers, runs the steps under a
// scheduler, and reads the results.
#include "sim/run/training/run_training.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "sim/gpu/device.h"
#include "sim/gpu/machine_trace.h"
#include "sim/gpu/memory_recorder.h"
#include "sim/run/training/checkpoints.h"
#include "sim/run/training/hardware_model.h"
#include "sim/run/training/permille.h"
#include "sim/run/training/run_parts.h"
#include "sim/run/training/scheduler.h"
#include "sim/run/training/segments.h"
#include "sim/run/training/training_loop.h"

namespace ferry::sim {

namespace {

// Returns a callback for the start of a forward: its segments are those of the plan, from the first
// on.
std::function<void()> begin_segments(Tape& tape, const SimulationOptions& options) {
  std::function<void(const Decision&)> log;
  if (options.offload) log = options.offload->log;
  return [&tape, plan = options.segments, log, run = std::uint64_t{0}]() mutable {
    const auto context = std::make_shared<CheckpointContext>();
    context->run = std::make_shared<CheckpointRun>(++run, log);
    if (plan) context->plan = std::make_shared<PlannedSegments>(plan);
    tape.set_checkpoint_context(context);
  };
}

CheckpointStatistics since(const CheckpointStatistics& now, const CheckpointStatistics& before) {
  return {.segments = now.segments - before.segments,
          .recomputes = now.recomputes - before.recomputes,
          .stopped_early = now.stopped_early - before.stopped_early,
          .saved = now.saved - before.saved,
          .kept = now.kept - before.kept,
          .passed_on = now.passed_on - before.passed_on,
          .alive = now.alive};
}

ReplayStatistics since(const ReplayStatistics& now, const ReplayStatistics& before) {
  return {.spans = now.spans - before.spans,
          .alive = now.alive,
          .calls = now.calls - before.calls,
          .calls_left = now.calls_left - before.calls_left,
          .saved = now.saved - before.saved,
          .passed_on = now.passed_on - before.passed_on,
          .held = now.held - before.held,
          .replays = now.replays - before.replays,
          .calls_replayed = now.calls_replayed - before.calls_replayed};
}

// The parts of a run, whatever schedules it.
struct Run {
  Tape& tape;
  const Machine& machine;
  TrainingLoop& loop;
  const Program& program;
  const SimulationOptions& options;
  const OffloaderMaker* offloaders;

  // Runs the steps under the hooks (null: none), with callbacks before each forward, before the
  // last step, and after each step.
  void steps(const std::shared_ptr<Hooks<Tensor>>& hooks, std::function<void()> begins_forward,
             const std::function<void()>& before_last, const std::function<void()>& ended) const {
    const auto step = [&] {
      tape.before_call([&] { begins_forward(); });
      if (hooks) {
        const HooksGuard<SimAutograd> guard(tape.autograd(), hooks);
        tape.run();
      } else {
        tape.run();
      }
      tape.before_call(nullptr);
      ended();
      tape.drop_frames();
    };
    loop.run(step, before_last);
  }
  template <class Exempting>
  void exempt_from(Exempting& scheduler) const {
    for (std::size_t i = 0; i < program.globals.size(); ++i) {
      if (program.globals[i].kind != GlobalKind::kInput) scheduler.exempt(tape.globals()[i].tensor);
    }
  }
};

// Runs the steps under the scheduler's hooks, and reports each forward to it.
void run_under(const Run& run, Scheduler& scheduler, const std::function<void()>& before_last,
               Simulation& result) {
  run.exempt_from(scheduler);
  OffloadStatistics before;
  run.steps(
      scheduler.hooks(),
      [&, begin = begin_segments(run.tape, run.options)]() mutable {
        scheduler.begin_forward();
        begin();
      },
      [&] {
        before_last();
        before = scheduler.statistics();
      },
      [&] { scheduler.finish(); });
  result.statistics = scheduler.statistics().since(before);
  result.resident = scheduler.resident();
  result.leftovers.core = !scheduler.empty();
}

// Makes the offloader that the options request.
template <class D>
std::unique_ptr<Scheduler> make_offloader(const Run& run, D device, Simulation& result) {
  if (!run.offloaders) throw std::invalid_argument("there is no offloader in this run");
  return run.offloaders->make(
      std::move(device), run.tape.autograd(), run.options,
      [&result](const std::string& text) { result.warnings.push_back(text); });
}

template <class D>
void run_on(const Run& run, D device, Scheduler* scheduler, Simulation& result) {
  Segments<D> segments(run.machine, {device}, run.tape.autograd(), run.options.rules);
  run.tape.set_segments(run.options.segments_as_calls ? nullptr : &segments);
  if (run.options.selective) {
    segments.set_contexts(selective(run.tape, run.options.selective, run.options.rules));
  }
  CheckpointStatistics checkpoints;
  ReplayStatistics replays;
  const auto before_last = [&] {
    checkpoints = segments.statistics();
    replays = segments.replays();
  };
  if (scheduler) {
    run_under(run, *scheduler, before_last, result);
  } else if (run.options.offload) {
    run_under(run, *make_offloader(run, std::move(device), result), before_last, result);
  } else {
    run.steps(nullptr, begin_segments(run.tape, run.options), before_last, [] {});
  }
  run.tape.set_segments(nullptr);
  run.tape.set_checkpoint_context(nullptr);
  result.checkpoints = since(segments.statistics(), checkpoints);
  result.replays = since(segments.replays(), replays);
  result.leftovers.core |= !segments.empty();
}

void run_program(const Run& run, Machine& machine, Scheduler* scheduler, Simulation& result) {
  const SimulationOptions& options = run.options;
  const SimDevice device(machine);
  if (options.mutation) {
    run_on(run, Bent<SimDevice>(device, options.mutation), scheduler, result);
  } else if (options.fault || options.choices) {
    const auto fault = options.fault ? options.fault : fault_of(*options.choices);
    run_on(run, Faulty<SimDevice>(device, fault), scheduler, result);
  } else {
    run_on(run, device, scheduler, result);
  }
}

// Reads the results of the last step.
void read_machine(Machine& machine, const TrainingLoop& loop, Simulation& result) {
  result.step_ns = machine.drain() - loop.began_ns();
  result.optimizer_ns = loop.optimizer_ns();
  const DeviceStats device = machine.device_stats();
  const DeviceStats& before = loop.stats_before();
  result.compute_ns = device.compute_busy_ns - before.compute_busy_ns;
  result.slowed_by_copies_ns = device.slowed_ns - before.slowed_ns;
  result.d2h_ns = device.d2h_busy_ns - before.d2h_busy_ns;
  result.h2d_ns = device.h2d_busy_ns - before.h2d_busy_ns;
  result.d2h_bytes = device.d2h_bytes - before.d2h_bytes;
  result.h2d_bytes = device.h2d_bytes - before.h2d_bytes;
  result.compute_idle_for_copies_ns = machine.compute_blocked_on_copies_ns() -
                                      loop.blocked_before_ns() +
                                      (machine.engine().makespan() - machine.compute_end_ns());
  result.device_peak_bytes = machine.pool().stats().allocated_bytes.peak;
  result.peak_kinds = machine.kinds_at_peak();
  result.device_requested_bytes = machine.pool().stats().requested_bytes.peak;
  result.device_reserved_bytes = machine.pool().stats().reserved_bytes.peak;
  result.deferred_peak_bytes = machine.pool().stats().deferred_bytes.peak;
  result.host_peak_bytes = machine.host_pool().stats().pinned_bytes.peak;
  result.operations = machine.operations();
  result.digest = machine.engine().digest();
  result.num_alloc_retries = machine.pool().stats().num_alloc_retries;
  result.last_alloc_retries = result.num_alloc_retries - loop.retries_before();
  result.out_of_memory = machine.pool().stats().num_ooms + machine.host_pool().stats().num_ooms;
}

void run_tape(Tape& tape, Machine& machine, const KernelTimes& times, const Program& program,
              const SimulationOptions& options, const OffloaderMaker* offloaders,
              const check::Values* values, Simulation& result) {
  TrainingLoop loop(options.training, program, machine, times, tape);
  machine.set_choices(options.choices);
  tape.watch_tasks(options.task_watches);
  if (!options.spans.empty()) {
    tape.set_spans(
        std::make_shared<const std::vector<SpanRange>>(span_ranges(program, options.spans)));
  }
  // The scheduler lives until the leftovers are counted. After a failed call it is destroyed before
  // that, because it may keep, as long as it lives, what it could not give back safely.
  std::unique_ptr<Scheduler> scheduler =
      options.scheduler ? options.scheduler(SimDevice(machine), tape.autograd()) : nullptr;
  run_program({tape, machine, loop, program, options, offloaders}, machine, scheduler.get(),
              result);
  read_machine(machine, loop, result);
  if (options.recorder) options.recorder->end();
  result.gradients = read_gradients(tape, values);
  if (options.choices && options.choices->failure()) scheduler.reset();
  const bool core = result.leftovers.core;
  result.leftovers = leftovers(machine, tape, loop.kept_storages());
  result.leftovers.core = core;
  result.errors = tape.errors();
  result.errors.insert(result.errors.end(), loop.errors().begin(), loop.errors().end());
  result.hazards = noticed(machine, tape);
}

}  // namespace

std::shared_ptr<FaultPoint> fault_of(choices::Choices& choices) {
  return std::make_shared<FaultPoint>(
      [&choices](Step) { return choices.choose(choices::ChoicePoint::kFault, 2) != 0; });
}

std::optional<std::int64_t> Simulation::overlap_permille() const {
  const std::int64_t copying = d2h_ns + h2d_ns;
  if (copying == 0) return std::nullopt;
  const std::int64_t hidden = std::max<std::int64_t>(copying - compute_idle_for_copies_ns, 0);
  return permille(hidden, copying, Round::kDown);
}

std::vector<std::string> messages(const Simulation& run) {
  std::vector<std::string> texts;
  for (const ProgramError& error : run.errors) texts.push_back(error.message);
  return texts;
}

std::shared_ptr<const Prepared> prepare(const Program& program, const Hardware& hardware,
                                        bool takes_memory) {
  const Roofline times(hardware);
  const CudaMemory memory(hardware, std::nullopt, /*keeps_workspaces=*/true);
  return std::make_shared<const Prepared>(
      prepared(program, times, takes_memory ? &memory : nullptr));
}

Simulation run_training(const Program& program, const Hardware& hardware,
                        const SimulationOptions& options, const OffloaderMaker* offloaders) {
  Simulation result;
  const Roofline times(hardware);
  const CudaMemory kernel_memory(hardware, options.workspace_bytes,
                                 options.alloc_conf.keeps_workspaces);
  check::HappensBefore::Options checks;
  checks.reuse_at_free = options.reuse_at_free;
  Checkers checkers(options.check && options.check_order ? Checks::kAll : Checks::kValues, checks);
  check::Values* const values = options.check ? &checkers.values() : nullptr;
  MachineOptions limits = machine_options(hardware);
  if (options.device_bytes > 0) {
    limits.context_bytes = hardware.context_bytes;
    limits.device_bytes = options.device_bytes + hardware.context_bytes;
  }
  limits.alloc_conf = options.alloc_conf;
  limits.host_bytes = options.host_bytes;
  limits.host_pool = options.host_pool;
  limits.work_most = options.work_most *
                     std::max<std::int64_t>(static_cast<std::int64_t>(options.training.steps), 1);
  limits.fault = options.world;
  Machine machine(limits);
  if (options.check) machine.add_consumer(&checkers);
  for (StreamOpConsumer* consumer : options.consumers) machine.add_consumer(consumer);
  std::optional<MachineTrace> trace;
  std::optional<MemoryRecorder> memory;
  if (options.memory != nullptr) memory.emplace(machine);
  if (options.trace != nullptr) machine.add_consumer(&trace.emplace(machine, *options.trace));
  if (options.recorder != nullptr) options.recorder->begin(machine);
  try {
    Tape tape(program, machine, times, values, {}, &kernel_memory, options.prepared);
    run_tape(tape, machine, times, program, options, offloaders, values, result);
    checkers.end_reuse();
    if (memory) *options.memory = memory->snapshot();
  } catch (const OutOfMemory& error) {
    // This comes before the step: parameters, inputs or the optimizer's state alone do not fit.
    result.errors.push_back({0, error.what()});
    ++result.out_of_memory;
    machine.drain();
    if (options.recorder) options.recorder->end();
  }
  result.hazards = checkers.hazards(std::move(result.hazards));
  return result;
}

}  // namespace ferry::sim
