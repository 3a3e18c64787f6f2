#include "sim/program/autograd.h"

#include <algorithm>
#include <cstddef>
#include <memory>

namespace ferry::sim {

Value SimAutograd::detach(const Value& value) {
  return leaf(value.tensor, static_cast<bool>(value.edge));
}

Value SimAutograd::leaf(const Tensor& tensor, bool requires_grad) {
  Value leaf{tensor, {}};
  if (!requires_grad) return leaf;
  leaf.edge.node = state_->new_node("AccumulateGrad");
  leaf.edge.node->sequence = kLeafSequence;
  leaf.edge.node->total = std::make_shared<Value>();
  return leaf;
}

void SimAutograd::backward(std::span<const Value> roots, std::span<const Value> gradients,
                           bool retain_graph) {
  std::vector<GraphEngine::Root> from;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    // A phony has no gradient and no bytes; a scalar's default gradient is one.
    const bool one = !gradients[i].tensor && roots[i].tensor;
    from.push_back({roots[i].edge, one ? state_->ones_like(roots[i].tensor) : gradients[i].tensor});
  }
  engine_->run(from, retain_graph, /*create_graph=*/false);
}

namespace {

bool is_differentiable(const Tensor& tensor) {
  switch (tensor->layout.window->layout.dtype) {
    case DType::kF64:
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kF8:
      return true;
    default:
      return false;
  }
}

// Returns null if there is nothing to differentiate. As with any function in PyTorch, integer
// outputs have no graph.
std::shared_ptr<Node> node_of(AutogradState& state, std::string_view name,
                              std::span<const Value> inputs, std::vector<Value>& outputs) {
  const bool needed =
      state.grad_mode() && std::any_of(inputs.begin(), inputs.end(),
                                       [](const Value& input) { return bool(input.edge); });
  if (NodeWatch* const watch = state.node_watch()) watch->asked(inputs, outputs, needed);
  if (!needed) return nullptr;
  const std::shared_ptr<Node> node = state.new_node(name);
  node->outputs = static_cast<std::uint32_t>(outputs.size());
  node->output_layouts.resize(outputs.size());
  for (const Value& input : inputs) node->next.push_back(input.edge);
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].tensor || is_differentiable(outputs[i].tensor)) outputs[i].edge = {node, i};
  }
  return node;
}

}  // namespace

std::vector<Value> SimAutograd::function(std::span<const Value> inputs, std::vector<Value> outputs,
                                         HostBackward backward, AbsentGradient absent) {
  const std::shared_ptr<Node> node = node_of(*state_, "checkpoint", inputs, outputs);
  if (!node) return outputs;
  node->host_backward = std::move(backward);
  for (const Value& input : inputs) node->saved.push_back(state_->save(node->name, input));
  for (std::size_t i = 0; i < outputs.size() && absent == AbsentGradient::kZeros; ++i) {
    if (outputs[i].tensor) node->output_layouts[i] = outputs[i].tensor->layout;
  }
  return outputs;
}

std::vector<Value> SimAutograd::node(
    std::span<const Value> inputs, std::vector<Value> outputs,
    std::function<std::vector<Value>(std::vector<Value>)> backward) {
  // The node has no layouts, so an absent gradient stays absent.
  if (const auto node = node_of(*state_, "pipeline", inputs, outputs)) {
    node->host_backward = [run = std::move(backward)](const std::vector<Value>&,
                                                      std::vector<Value> gradients) {
      return run(std::move(gradients));
    };
  }
  return outputs;
}

bool SimAutograd::differentiable(const Value& value) const {
  return value.tensor && is_differentiable(value.tensor);
}

}  // namespace ferry::sim
