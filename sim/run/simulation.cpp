#include "sim/run/simulation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "shared/offload/offloader.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine_trace.h"
#include "sim/gpu/memory_recorder.h"
#include "sim/run/core.h"
#include "sim/run/hardware_model.h"
#include "sim/run/permille.h"
#include "sim/run/run_parts.h"
#include "sim/run/scheduler.h"
#include "sim/run/segments.h"

namespace ferry::sim {

namespace {

// Called when a forward begins: its segments are the plan's, from the first on.
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

template <class D>
void run_offloaded(D device, Tape& tape, const Program& program, SimulationOptions options,
                   Simulation& result) {
  options.offload->warn = [&result](const std::string& text) { result.warnings.push_back(text); };
  Offloader<D, SimAutograd> offloader(std::move(device), tape.autograd(), *options.offload,
                                      options.rules);
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    if (program.globals[i].kind != GlobalKind::kInput) offloader.exempt(tape.globals()[i].tensor);
  }
  tape.before_call([&, begin = begin_segments(tape, options)]() mutable {
    offloader.begin_run();
    begin();
  });
  {
    const HooksGuard<SimAutograd> guard(tape.autograd(), offloader.hooks());
    tape.run();
  }
  tape.before_call(nullptr);
  tape.drop_frames();
  result.statistics = offloader.statistics();
  result.leftovers.core = !offloader.empty();
}

void run_scheduled(Scheduler& scheduler, Tape& tape, const Program& program,
                   const SimulationOptions& options, Simulation& result) {
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    if (program.globals[i].kind != GlobalKind::kInput) scheduler.exempt(tape.globals()[i].tensor);
  }
  tape.before_call([&, begin = begin_segments(tape, options)]() mutable {
    scheduler.begin_forward();
    begin();
  });
  {
    const HooksGuard<SimAutograd> guard(tape.autograd(), scheduler.hooks());
    tape.run();
  }
  tape.before_call(nullptr);
  scheduler.finish();
  tape.drop_frames();
  result.leftovers.core = !scheduler.empty();
}

template <class D>
void run_on(D device, Tape& tape, const Machine& machine, const Program& program,
            const SimulationOptions& options, Scheduler* scheduler, Simulation& result) {
  Segments<D> segments(machine, {device}, tape.autograd(), options.rules);
  tape.set_segments(&segments);
  if (scheduler) {
    run_scheduled(*scheduler, tape, program, options, result);
  } else if (options.offload) {
    run_offloaded(std::move(device), tape, program, options, result);
  } else {
    tape.before_call(begin_segments(tape, options));
    tape.run();
    tape.before_call(nullptr);
    tape.drop_frames();
  }
  tape.set_segments(nullptr);
  tape.set_checkpoint_context(nullptr);
  result.checkpoints = segments.statistics();
  result.replays = segments.replays();
  result.leftovers.core |= !segments.empty();
}

void run_program(Tape& tape, Machine& machine, const Program& program,
                 const SimulationOptions& options, Scheduler* scheduler, Simulation& result) {
  const SimDevice device(machine);
  if (options.mutation) {
    run_on(Bent<SimDevice>(device, options.mutation), tape, machine, program, options, scheduler,
           result);
  } else if (options.fault || options.choices) {
    const auto fault = options.fault ? options.fault : fault_of(*options.choices);
    run_on(Faulty<SimDevice>(device, fault), tape, machine, program, options, scheduler, result);
  } else {
    run_on(device, tape, machine, program, options, scheduler, result);
  }
}

void read_machine(Machine& machine, Simulation& result) {
  result.step_ns = machine.drain();
  const DeviceStats device = machine.device_stats();
  result.compute_ns = device.compute_busy_ns;
  result.d2h_ns = device.d2h_busy_ns;
  result.h2d_ns = device.h2d_busy_ns;
  result.d2h_bytes = device.d2h_bytes;
  result.h2d_bytes = device.h2d_bytes;
  result.compute_idle_for_copies_ns = machine.compute_blocked_on_copies_ns() +
                                      (machine.engine().makespan() - machine.compute_end_ns());
  result.device_peak_bytes = machine.pool().stats().allocated_bytes.peak;
  result.device_reserved_bytes = machine.pool().stats().reserved_bytes.peak;
  result.host_peak_bytes = machine.host_pool().stats().pinned_bytes.peak;
  result.operations = machine.operations();
  result.digest = machine.engine().digest();
  result.out_of_memory = machine.pool().stats().num_ooms + machine.host_pool().stats().num_ooms;
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

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options) {
  Simulation result;
  const Roofline times(hardware);
  Checkers checkers;
  MachineOptions limits = machine_options(hardware);
  limits.device_bytes = options.device_bytes;
  limits.alloc_conf = options.alloc_conf;
  limits.host_bytes = options.host_bytes;
  limits.host_pool = options.host_pool;
  limits.work_most = options.work_most;
  limits.fault = options.world;
  Machine machine(limits);
  if (options.check) machine.add_consumer(&checkers);
  for (StreamOpConsumer* consumer : options.consumers) machine.add_consumer(consumer);
  std::optional<MachineTrace> trace;
  std::optional<MemoryRecorder> memory;
  if (options.memory != nullptr) memory.emplace(machine);
  if (options.trace != nullptr) machine.add_consumer(&trace.emplace(machine, *options.trace));
  {
    Tape tape(program, machine, times, options.check ? &checkers.values() : nullptr);
    const std::vector<Storage> state = optimizer_state(program, options.optimizer, machine, tape);
    machine.set_choices(options.choices);
    if (!options.spans.empty()) {
      tape.set_spans(
          std::make_shared<const std::vector<SpanRange>>(span_ranges(program, options.spans)));
    }
    // It lives until the leftovers were counted.
    const std::unique_ptr<Scheduler> scheduler =
        options.scheduler ? options.scheduler(SimDevice(machine), tape.autograd()) : nullptr;
    run_program(tape, machine, program, options, scheduler.get(), result);
    read_machine(machine, result);
    if (memory) *options.memory = memory->snapshot();
    result.gradients = read_gradients(tape, options.check ? &checkers.values() : nullptr);
    const bool core = result.leftovers.core;
    result.leftovers = leftovers(machine, tape, state.size());
    result.leftovers.core = core;
    result.errors = tape.errors();
    result.hazards = noticed(machine, tape);
  }
  result.hazards = checkers.hazards(std::move(result.hazards));
  return result;
}

}  // namespace ferry::sim
