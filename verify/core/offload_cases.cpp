// Special cases (cases.h) for what programs cannot contain: tensors of another device. The
// offloader must leave such a tensor where it is.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "formats/layout.h"
#include "shared/offload/offloader.h"
#include "shared/seam/autograd.h"
#include "sim/gpu/device.h"
#include "sim/gpu/tensor.h"
#include "verify/core/cases.h"

namespace ferry::verify {
namespace {

// An autograd in which no backward runs. The case packs and unpacks outside of any backward.
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

// Returns true if the core is right.
bool other_devices_tensors_stay(Rules rules) {
  sim::Machine here{sim::MachineOptions{}}, other{sim::MachineOptions{}};
  Offloader<sim::SimDevice, NoBackward> offloader(sim::SimDevice(here), NoBackward(), {}, rules);
  const sim::Tensor x = make_bytes(other, 4096);
  const auto saved = offloader.hooks()->pack(x);
  return offloader.statistics().offloaded_count == 0 && saved->unpack()->storage == x->storage;
}

}  // namespace

std::map<std::string, MutantCase> offload_cases() {
  return {{"rule: other device", case_of_rules(other_devices_tensors_stay)}};
}

const MutantCase* own_case(const Mutant& mutant) {
  static const std::map<std::string, MutantCase> cases = offload_cases();
  static const MutantCase wards = wards_are_right;
  if (mutant.part == MutantPart::kState) return &wards;
  const auto found = cases.find(mutant.name);
  return found == cases.end() ? nullptr : &found->second;
}

}  // namespace ferry::verify
