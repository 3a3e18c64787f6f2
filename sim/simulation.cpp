#include "sim/simulation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "scenarios/roofline.h"
#include "shared/checkpoint.h"
#include "shared/offloader.h"
#include "sim/checkers/happens_before.h"
#include "sim/checkers/lifetime.h"
#include "sim/checkers/values.h"
#include "sim/device.h"

namespace ferry::sim {

namespace {

class Roofline final : public KernelTimes {
 public:
  explicit Roofline(const Hardware& hardware) : hardware_(hardware) {}
  Time op_ns(const Op& op, DType computes_in) const override {
    return kernel_ns(op, computes_in, hardware_);
  }

 private:
  const Hardware& hardware_;
};

// The checkers, in the order in which they look at an operation.
class Checkers final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    lifetime_(op);
    happens_before_(op);
    values_(op);
  }
  Values& values() { return values_; }
  std::vector<Hazard> hazards() const {
    std::vector<Hazard> all = lifetime_.hazards();
    all.insert(all.end(), happens_before_.hazards().begin(), happens_before_.hazards().end());
    return all;
  }

 private:
  Lifetime lifetime_;
  HappensBefore happens_before_;
  Values values_;
};

MachineOptions machine_options(const Hardware& hardware, const SimulationOptions& options) {
  MachineOptions machine;
  machine.links = {hardware.link.h2d_alone, hardware.link.d2h_alone, hardware.link.h2d_both,
                   hardware.link.d2h_both, hardware.link.latency_ns};
  machine.launch_ns = hardware.launch_ns;
  machine.device_bytes = options.device_bytes;
  machine.host_bytes = options.host_bytes;
  machine.host_total_bytes = hardware.host_memory_bytes;
  return machine;
}

std::int64_t optimizer_tensors(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kNoOptimizer:
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 1;
    case Optimizer::kAdamW:
      return 2;
  }
  return 0;
}

std::vector<Storage> optimizer_state(const Program& program, Optimizer optimizer, Machine& machine,
                                     const Tape& tape) {
  std::vector<Storage> state;
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    const Global& global = program.globals[i];
    if (!global.requires_grad || global.alias != kNoSlot) continue;
    const std::int64_t bytes = tape.globals()[i].tensor->storage->bytes;
    for (std::int64_t n = 0; n < optimizer_tensors(optimizer); ++n) {
      state.push_back(machine.allocate(bytes, machine.compute_stream(0)));
    }
  }
  return state;
}

// The core's checkpointer, for the tape.
template <class D>
class Segments final : public SegmentRunner {
 public:
  Segments(D device, SimAutograd autograd, const SimulationOptions& options)
      : checkpointer_(std::move(device), autograd, options.rules,
                      options.offload ? options.offload->log : nullptr) {}
  void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
           Function forward) override {
    checkpointer_.run(std::move(inputs), std::move(options), std::move(function),
                      std::move(forward));
  }
  std::vector<Value> run_reentrant(
      const std::vector<Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<Value>(std::vector<Value>)> function) override {
    return checkpointer_.run_reentrant(inputs, options, std::move(function));
  }
  CheckpointStatistics statistics() const { return checkpointer_.statistics(); }

 private:
  Checkpointer<D, SimAutograd> checkpointer_;
};

template <class D>
void run_offloaded(D device, Tape& tape, const Program& program, SimulationOptions options,
                   Simulation& result) {
  options.offload->warn = [&result](const std::string& text) { result.warnings.push_back(text); };
  Offloader<D, SimAutograd> offloader(std::move(device), tape.autograd(), *options.offload,
                                      options.rules);
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    if (program.globals[i].kind != GlobalKind::kInput) offloader.exempt(tape.globals()[i].tensor);
  }
  tape.before_call([&offloader] { offloader.begin_run(); });
  {
    const HooksGuard<SimAutograd> guard(tape.autograd(), offloader.hooks());
    tape.run();
  }
  tape.before_call(nullptr);
  tape.drop_frames();
  result.statistics = offloader.statistics();
  result.leftovers.core = !offloader.empty();
}

template <class D>
void run_on(D device, Tape& tape, const Program& program, const SimulationOptions& options,
            Simulation& result) {
  Segments<D> segments(device, tape.autograd(), options);
  tape.set_segments(&segments);
  if (options.offload) {
    run_offloaded(std::move(device), tape, program, options, result);
  } else {
    tape.run();
    tape.drop_frames();
  }
  tape.set_segments(nullptr);
  result.checkpoints = segments.statistics();
  result.leftovers.core |= result.checkpoints.alive != 0;
}

void run_program(Tape& tape, Machine& machine, const Program& program,
                 const SimulationOptions& options, Simulation& result) {
  const SimDevice device(machine);
  if (options.mutation) {
    run_on(Bent<SimDevice>(device, options.mutation), tape, program, options, result);
  } else if (options.fault) {
    run_on(Faulty<SimDevice>(device, options.fault), tape, program, options, result);
  } else {
    run_on(device, tape, program, options, result);
  }
}

void read_machine(Machine& machine, Simulation& result) {
  result.step_ns = machine.drain();
  const DeviceStats device = machine.device_stats();
  result.compute_ns = device.compute_busy_ns;
  result.d2h_ns = device.d2h_busy_ns;
  result.h2d_ns = device.h2d_busy_ns;
  result.compute_idle_for_copies_ns = machine.compute_blocked_on_copies_ns();
  result.device_peak_bytes = machine.pool().stats().allocated_bytes.peak;
  result.device_reserved_bytes = machine.pool().stats().reserved_bytes.peak;
  result.host_peak_bytes = machine.host_pool().stats().pinned_bytes.peak;
  result.operations = machine.operations();
  result.digest = machine.engine().digest();
}

// Contents of every gradient, and how many storages may live on.
std::int64_t read_gradients(const Tape& tape, const Values* values, Simulation& result) {
  std::vector<const StorageImpl*> alive;
  for (const auto* list : {&tape.globals(), &tape.gradients()}) {
    for (const Value& value : *list) {
      if (value.tensor) alive.push_back(value.tensor->storage.get());
    }
  }
  for (const Value& gradient : tape.gradients()) {
    const bool known = values && gradient.tensor;
    result.gradients.push_back(known ? values->read(range_of(gradient.tensor)) : 0);
  }
  std::sort(alive.begin(), alive.end());  // to count each once; the order shows nowhere
  return std::unique(alive.begin(), alive.end()) - alive.begin();
}

}  // namespace

std::optional<std::int64_t> Simulation::overlap_permille() const {
  const std::int64_t copying = d2h_ns + h2d_ns;
  if (copying == 0) return std::nullopt;
  const std::int64_t hidden = std::max<std::int64_t>(copying - compute_idle_for_copies_ns, 0);
  return hidden * 1000 / copying;
}

Simulation simulate(const Program& program, const Hardware& hardware,
                    const SimulationOptions& options) {
  Simulation result;
  const Roofline times(hardware);
  Checkers checkers;
  Machine machine(machine_options(hardware, options));
  if (options.check) machine.add_consumer(&checkers);
  for (StreamOpConsumer* consumer : options.consumers) machine.add_consumer(consumer);
  {
    Tape tape(program, machine, times, options.check ? &checkers.values() : nullptr);
    const std::vector<Storage> state = optimizer_state(program, options.optimizer, machine, tape);
    run_program(tape, machine, program, options, result);
    read_machine(machine, result);
    const std::int64_t alive =
        read_gradients(tape, options.check ? &checkers.values() : nullptr, result);
    result.leftovers.storages =
        machine.live_storages() - alive - static_cast<std::int64_t>(state.size());
    result.leftovers.events = machine.live_events();
    result.leftovers.host_bytes = machine.host_pool().stats().in_use_bytes.current;
    result.errors = tape.errors();
    result.hazards = tape.hazards();
  }
  const std::vector<Hazard> found = checkers.hazards();
  result.hazards.insert(result.hazards.end(), found.begin(), found.end());
  return result;
}

namespace {

// Hooks that write down what they are handed, and leave it as it is.
class Surveyor final : public Hooks<Tensor> {
 public:
  Surveyor(const Program& program, const Tape& tape) : tape_(tape) {
    for (std::size_t i = 0; i < program.globals.size(); ++i) {
      const std::uint64_t identity = tape.globals()[i].tensor->storage->identity;
      globals_.push_back(identity);
      if (program.globals[i].kind != GlobalKind::kInput) exempt_.push_back(identity);
    }
  }
  std::unique_ptr<Saved<Tensor>> pack(const Tensor& tensor) override {
    if (forwards == 1) {
      const std::uint64_t identity = tensor->storage->identity;
      const auto among = [identity](const std::vector<std::uint64_t>& list) {
        return std::find(list.begin(), list.end(), identity) != list.end();
      };
      const auto group = groups_.try_emplace(identity, groups_.size()).first->second;
      seen.push_back({std::string(tape_.saving_node()), tensor->layout.window->layout, group,
                      tensor->storage->bytes, among(globals_), among(exempt_)});
    }
    return nullptr;
  }
  int forwards = 0;
  std::vector<PackedTensor> seen;

 private:
  const Tape& tape_;
  std::vector<std::uint64_t> globals_;
  std::vector<std::uint64_t> exempt_;
  std::map<std::uint64_t, std::uint64_t> groups_;
};

}  // namespace

std::vector<PackedTensor> survey(const Program& program, const Hardware& hardware) {
  const Roofline times(hardware);
  Machine machine(machine_options(hardware, {}));
  Tape tape(program, machine, times, nullptr);
  const auto surveyor = std::make_shared<Surveyor>(program, tape);
  tape.before_call([&surveyor] { ++surveyor->forwards; });
  const HooksGuard<SimAutograd> guard(tape.autograd(), surveyor);
  tape.run();
  tape.drop_frames();
  return std::move(surveyor->seen);
}

}  // namespace ferry::sim
