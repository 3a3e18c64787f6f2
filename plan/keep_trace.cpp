#include "plan/keep_trace.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "shared/seam/hooks.h"
#include "sim/check/values.h"
#include "sim/run/training/hardware_model.h"
#include "sim/run/training/run_parts.h"

namespace ferry::plan {
namespace {

// Rounds as the allocator does. The real block may be larger, if the allocator does not split off a
// small remainder.
std::int64_t rounded(std::int64_t bytes) { return (bytes + 511) / 512 * 512; }

// The program with numbers as the names of its operators, so that a kernel's name identifies its
// operator. Kernels that autograd itself launches keep their names.
struct Numbered {
  Program program;
  std::vector<sim::Time> ns;  // by operator number

  Numbered(const Program& of, const sim::KernelTimes& times) : program(of) {
    for (Code& code : program.codes) {
      for (Statement& statement : code.statements) {
        auto* op = std::get_if<Op>(&statement.action);
        if (!op) continue;
        const DType computes = op->types.empty() ? DType::kF32 : of.types[op->types.front()].dtype;
        const sim::Time took = std::max<sim::Time>(times.op_ns(*op, computes), 1);
        op->name = std::to_string(ns.size());
        ns.push_back(took);
      }
    }
  }
};

class Tracer final : public StreamOpConsumer {
 public:
  Tracer(const std::vector<sim::Time>& op_ns, const sim::KernelTimes& times)
      : op_ns_(op_ns), times_(times) {}

  void begin_step(const sim::SimAutograd& autograd) { autograd_ = autograd; }
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kAlloc && op.stream != sim::kNoStream) {
      live_[op.range.address] = {trace.storages.size(), op.range.end()};
      trace.storages.emplace_back();
    } else if (op.kind == StreamOpKind::kFree) {
      const auto freed = live_.find(op.range.address);
      if (freed == live_.end() || ended_) return;
      trace.storages[freed->second.storage].freed =
          static_cast<std::uint32_t>(trace.kernels.size());
      live_.erase(freed);
    } else if (op.kind == StreamOpKind::kKernel) {
      ran(op);
    }
  }
  void keep_gradient(const sim::Tensor& tensor) {
    if (TracedStorage* storage = find(sim::range_of(tensor).address).first) {
      storage->gradient = true;
    }
  }
  void packed(const sim::Tensor& tensor) {
    const TracedStorage* storage = find(sim::range_of(tensor->storage).address).first;
    TracedPack pack;
    if (storage) pack.storage = static_cast<std::uint32_t>(storage - trace.storages.data());
    pack.kernels = static_cast<std::uint32_t>(trace.kernels.size());
    trace.packs.push_back(pack);
  }
  void unpacked(std::size_t number) {
    std::uint32_t& first = trace.packs[number].unpacked;
    first = std::min(first, static_cast<std::uint32_t>(trace.kernels.size()));
  }
  void end_step() {
    ended_ = true;  // later frees come from the tape's end, not from the step
    for (TracedStorage& storage : trace.storages) {
      std::int64_t bytes = 0;
      for (const StorageUse& use : storage.uses) bytes = std::max(bytes, use.end);
      storage.block_bytes = rounded(bytes);
    }
  }

  KeepTrace trace;

 private:
  struct Live {
    std::size_t storage = 0;
    std::uint64_t end = 0;
  };

  // Returns the storage at an address and the offset in it; null: it is older than the step.
  std::pair<TracedStorage*, std::int64_t> find(std::uint64_t address) {
    auto at = live_.upper_bound(address);
    if (at == live_.begin()) return {nullptr, 0};
    --at;
    if (address >= at->second.end) return {nullptr, 0};
    return {&trace.storages[at->second.storage], static_cast<std::int64_t>(address - at->first)};
  }

  // Autograd's own kernels have no operator. They read and write what the graph engine charges for.
  sim::Time ns_of(const StreamOp& op) const {
    std::size_t number = 0;
    const auto end = op.name.data() + op.name.size();
    if (std::from_chars(op.name.data(), end, number).ptr == end) return op_ns_[number];
    const bool sum = op.tag == check::kSumTag;
    Op own;
    own.read_bytes = sum ? 3 * static_cast<std::int64_t>(op.reads.front().bytes)
                         : static_cast<std::int64_t>(op.writes.front().bytes);
    return std::max<sim::Time>(times_.op_ns(own, DType::kF32), 1);
  }
  void ran(const StreamOp& op) {
    const auto kernel = static_cast<std::uint32_t>(trace.kernels.size());
    const bool forward = !autograd_ || autograd_->graph_task() == GraphTaskId::kNone;
    trace.kernels.push_back({ns_of(op), forward, op.tag == check::kSumTag});
    for (const Range& range : op.writes) {
      TracedStorage* storage = find(range.address).first;
      if (storage && storage->maker == TracedStorage::kNobody) storage->maker = kernel;
    }
    for (const bool reads : {true, false}) {
      for (const Range& range : reads ? op.reads : op.writes) {
        const auto [storage, byte] = find(range.address);
        if (!storage || range.bytes == 0) continue;
        const auto end = byte + static_cast<std::int64_t>(range.bytes);
        storage->uses.push_back({kernel, byte, end, reads});
      }
    }
  }

  const std::vector<sim::Time>& op_ns_;
  const sim::KernelTimes& times_;
  std::optional<sim::SimAutograd> autograd_;
  std::map<std::uint64_t, Live> live_;  // by address
  bool ended_ = false;
};

// A saved tensor that stays in place, as without hooks, and reports its unpacks to the tracer.
class Watched final : public Saved<sim::Tensor> {
 public:
  Watched(Tracer& tracer, const sim::Tensor& tensor, std::optional<std::size_t> number)
      : tracer_(tracer),
        tensor_(std::make_shared<sim::TensorImpl>(*tensor)),
        version_(tensor->version->value),
        number_(number) {}
  sim::Tensor unpack() override {
    const std::uint64_t now = tensor_->version->value;
    if (now != version_) throw make_error<sim::Tensor>(ModifiedInPlace(now, version_));
    if (number_) tracer_.unpacked(*number_);
    return tensor_;
  }

 private:
  Tracer& tracer_;
  const sim::Tensor tensor_;
  const std::uint64_t version_;
  const std::optional<std::size_t> number_;
};

class Watch final : public Hooks<sim::Tensor> {
 public:
  explicit Watch(Tracer& tracer) : tracer_(tracer) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    std::optional<std::size_t> number;
    if (forwards == 1) {
      number = tracer_.trace.packs.size();
      tracer_.packed(tensor);
    }
    return std::make_unique<Watched>(tracer_, tensor, number);
  }
  int forwards = 0;

 private:
  Tracer& tracer_;
};

// Returns the bytes in memory in the optimizer's step of any plan: everything except activations.
std::int64_t optimizer_bytes(const KeepTrace& trace) {
  std::int64_t bytes = trace.held_bytes;
  for (const TracedStorage& storage : trace.storages) {
    if (storage.gradient) bytes += storage.block_bytes;
  }
  return bytes;
}

}  // namespace

KeepTrace trace_keep(const Program& program, const Hardware& hardware, sim::Optimizer optimizer,
                     bool keeps_gradients) {
  const sim::Roofline times(hardware);
  const Numbered numbered(program, times);
  Tracer tracer(numbered.ns, times);
  sim::Machine machine(sim::machine_options(hardware));
  sim::Tape tape(numbered.program, machine, times, nullptr);
  const std::vector<sim::Storage> state = sim::optimizer_state(program, optimizer, machine, tape);
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    if (program.globals[i].alias != kNoSlot) continue;
    tracer.trace.held_bytes += rounded(tape.globals()[i].tensor->storage->bytes);
  }
  for (const sim::Storage& each : state) tracer.trace.held_bytes += rounded(each->bytes);
  machine.add_consumer(&tracer);
  tracer.begin_step(tape.autograd());
  const auto watch = std::make_shared<Watch>(tracer);
  tape.before_call([&watch] { ++watch->forwards; });
  std::vector<bool> trained(program.globals.size());
  tape.after_accumulate([&](Slot global) {
    trained[global] = true;
    if (!keeps_gradients) tape.drop_gradient(global);
  });
  {
    const HooksGuard<sim::SimAutograd> guard(tape.autograd(), watch);
    tape.run();  // without a segment runner, calls of checkpoint run as plain calls
  }
  tape.before_call(nullptr);
  tape.drop_frames();
  std::map<DType, std::int64_t> by_dtype;
  for (std::size_t i = 0; i < program.globals.size(); ++i) {
    if (!trained[i]) continue;
    if (keeps_gradients) tracer.keep_gradient(tape.gradients()[i].tensor);
    if (program.globals[i].alias != kNoSlot) continue;
    const std::int64_t bytes = rounded(tape.globals()[i].tensor->storage->bytes);
    tracer.trace.trained_bytes += bytes;
    std::int64_t& alike = by_dtype[program.types[program.globals[i].type].dtype];
    alike += bytes;
    tracer.trace.trained_alike_bytes = std::max(tracer.trace.trained_alike_bytes, alike);
  }
  tracer.trace.fails = !tape.errors().empty();
  tracer.end_step();
  return std::move(tracer.trace);
}

KeepTrace trace_training(const Program& program, const Hardware& hardware,
                         const sim::Training& training, sim::Time optimizer_ns) {
  if (training.steps == 0) return trace_keep(program, hardware, training.optimizer);
  const bool on_host = training.state != sim::OptimizerState::kDevice;
  KeepTrace trace = trace_keep(program, hardware, sim::Optimizer::kNoOptimizer,
                               training.state != sim::OptimizerState::kHostInBackward);
  const std::int64_t state =
      on_host ? 0 : sim::optimizer_tensors(training.optimizer) * trace.trained_bytes;
  trace.optimizer_ns = optimizer_ns;
  trace.optimizer_bytes = optimizer_bytes(trace) + state;
  // foreach Adam and AdamW hold the roots of the second moments of all parameters of a dtype.
  const bool lists = !on_host &&
                     training.implementation == sim::OptimizerImplementation::kForeach &&
                     sim::optimizer_tensors(training.optimizer) == 2;
  if (lists) trace.optimizer_bytes += trace.trained_alike_bytes;
  // The first step makes the state after its backward; later steps have it from their start.
  if (training.steps > 1) trace.held_bytes += state;
  return trace;
}

}  // namespace ferry::plan
