// The simulated autograd as one that does no more than the seam says: it refuses what the core need
// not ask, its phonies are tensors without bytes, and it notes what it was asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

struct Asked {
  struct Node {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    StreamId stream{};
  };
  std::vector<Node> nodes;
  std::vector<std::vector<bool>> functions;     // by function: which inputs require grad
  std::vector<const sim::TensorImpl*> phonies;  // the tensor of what each was asked for; null: none
  std::vector<bool> saves;                      // whether each value that was saved requires grad
  std::vector<bool> roots;  // whether each root of a backward came with a gradient
  // Set: tasks end when the test calls these.
  bool ends_late = false;
  std::vector<std::function<void()>> ends;
};

class AskedAutograd final : public sim::SimAutograd {
 public:
  using Values = std::vector<Value>;

  explicit AskedAutograd(PipelineRig& rig)
      : SimAutograd(rig.autograd()), machine_(&rig.machine()), asked_(std::make_shared<Asked>()) {}

  Asked& asked() const { return *asked_; }
  std::int64_t handles() const { return asked_.use_count(); }

  Tensor tensor(const Value& value) const {
    if (!exists(value)) throw std::logic_error("the tensor of a value that has none");
    return SimAutograd::tensor(value);
  }
  Value leaf(const Tensor& tensor, bool requires_grad) {
    if (!tensor) throw std::logic_error("a leaf without a tensor");
    return SimAutograd::leaf(tensor, requires_grad);
  }
  Value phony(const Value& value) const {
    asked_->phonies.push_back(value.tensor.get());
    static const auto window =
        std::make_shared<const sim::Window>(sim::Window{contiguous_layout(DType::kF32, {0}), {}});
    return {sim::make_tensor(machine_->allocate(0, machine_->current_stream()), {window, 0},
                             machine_->new_version()),
            {}};
  }
  using SimAutograd::node;
  Values node(std::span<const Value> inputs, Values outputs, std::function<Values(Values)> run) {
    expect_no_graph(outputs);
    asked_->nodes.push_back({inputs.size(), outputs.size(), machine_->current_stream()});
    return SimAutograd::node(inputs, std::move(outputs), std::move(run));
  }
  Values function(std::span<const Value> inputs, Values outputs, sim::HostBackward run,
                  AbsentGradient absent) {
    expect_no_graph(outputs);
    std::vector<bool>& which = asked_->functions.emplace_back();
    for (const Value& input : inputs) which.push_back(requires_grad(input));
    return SimAutograd::function(inputs, std::move(outputs), std::move(run), absent);
  }
  SavedValue save(const Value& value) {
    asked_->saves.push_back(requires_grad(value));
    return SimAutograd::save(value);
  }
  void backward(std::span<const Value> roots, std::span<const Value> gradients) {
    for (const Value& gradient : gradients) asked_->roots.push_back(exists(gradient));
    SimAutograd::backward(roots, gradients);
  }
  void after_task(std::function<void()> callback) {
    if (!asked_->ends_late) return SimAutograd::after_task(std::move(callback));
    asked_->ends.push_back(std::move(callback));
  }

 private:
  void expect_no_graph(const Values& outputs) const {
    for (const Value& output : outputs) {
      if (requires_grad(output)) throw std::logic_error("the outputs of a node have a graph");
    }
  }
  sim::Machine* machine_;
  std::shared_ptr<Asked> asked_;
};

static_assert(PipelineAutograd<AskedAutograd>);

}  // namespace ferry::test
