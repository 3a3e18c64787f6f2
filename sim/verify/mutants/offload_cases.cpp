// Tests what programs cannot write down: other storages under a tensor, tensors of other devices.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "formats/layout.h"
#include "shared/offload/offloader.h"
#include "shared/seam/autograd.h"
#include "sim/check/values.h"
#include "sim/gpu/device.h"
#include "sim/gpu/tensor.h"
#include "sim/verify/mutants/cases.h"

namespace ferry::verify {
namespace {

class ValueConsumer final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override { values(op); }
  check::Values values;
};

// An autograd in which no backward ever runs: the cases pack and unpack outside of one.
class NoBackward {
 public:
  using Tensor = sim::Tensor;
  GraphTaskId graph_task() const { return GraphTaskId::kNone; }
  NodeId node() const { return NodeId::kNone; }
  void after_node(std::function<void()>) {}
  void after_task(std::function<void()>) {}
  HookStack<Tensor> hooks() const { return *hooks_; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(NoBackward autograd, HookStack<Tensor> hooks)
        : ReplacedHooks<Tensor>(*autograd.hooks_, std::move(hooks)) {}
  };

 private:
  std::shared_ptr<HookStack<Tensor>> hooks_ = std::make_shared<HookStack<Tensor>>();
};
static_assert(Autograd<NoBackward>);

sim::Tensor make_bytes(sim::Machine& machine, std::int64_t bytes) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return sim::make_tensor(machine.allocate(bytes, machine.current_stream()), {window, 0},
                          machine.new_version());
}

// Programs cannot write these down. Each returns true where the core does it right.
struct Bench {
  explicit Bench(Rules rules, CoreOptions options = {})
      : offloader(sim::SimDevice(machine), NoBackward(), std::move(options), rules) {
    machine.add_consumer(&consumer);
  }
  sim::Machine machine{sim::MachineOptions{}};
  ValueConsumer consumer;
  Offloader<sim::SimDevice, NoBackward> offloader;
};

// x.data = other: x keeps its version counter, and the other storage lies where the first one did.
bool reused_address_is_no_identity(Rules rules) {
  CoreOptions options;
  options.window_bytes = 0;
  Bench bench(rules, options);
  const sim::Tensor x = make_bytes(bench.machine, 4096);
  const auto first = bench.offloader.hooks()->pack(x);
  const auto evicts = bench.offloader.hooks()->pack(make_bytes(bench.machine, 4096));
  x->storage = nullptr;
  x->storage = bench.machine.allocate(4096, bench.machine.current_stream());
  bench.consumer.values.write(sim::range_of(x), 7);
  const std::uint64_t expected = bench.consumer.values.read(sim::range_of(x));
  const auto second = bench.offloader.hooks()->pack(x);
  x->storage = nullptr;
  const auto evicts_again = bench.offloader.hooks()->pack(make_bytes(bench.machine, 8192));
  return bench.consumer.values.read(sim::range_of(second->unpack())) == expected;
}

bool kept_storage_does_not_move(Rules rules) {
  CoreOptions options;
  options.offload = {false, true};
  Bench bench(rules, options);
  const sim::Tensor x = make_bytes(bench.machine, 4096);
  const auto kept = bench.offloader.hooks()->pack(x);
  const auto again = bench.offloader.hooks()->pack(x);
  return bench.offloader.statistics().offloaded_count == 0;
}

bool other_devices_tensors_stay(Rules rules) {
  sim::Machine other{sim::MachineOptions{}};
  Bench bench(rules);
  const sim::Tensor x = make_bytes(other, 4096);
  const auto saved = bench.offloader.hooks()->pack(x);
  return bench.offloader.statistics().offloaded_count == 0 &&
         saved->unpack()->storage == x->storage;
}

}  // namespace

std::map<std::string, MutantCase> offload_cases() {
  return {{"rule: identity", case_of_rules(reused_address_is_no_identity)},
          {"rule: keep kept", case_of_rules(kept_storage_does_not_move)},
          {"rule: other device", case_of_rules(other_devices_tensors_stay)}};
}

}  // namespace ferry::verify
