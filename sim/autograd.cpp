#include "sim/autograd.h"

#include <algorithm>
#include <cstddef>
#include <memory>

namespace ferry::sim {

Value SimAutograd::detach(const Value& value) {
  Value leaf{value.tensor, {}};
  if (!value.edge) return leaf;
  leaf.edge.node = state_->new_node("AccumulateGrad");
  leaf.edge.node->total = std::make_shared<Value>();
  return leaf;
}

void SimAutograd::backward(std::span<const Value> roots, std::span<const Value> gradients) {
  std::vector<GraphEngine::Root> from;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    from.push_back({roots[i].edge, gradients[i].tensor});
  }
  engine_->run(from, /*retain_graph=*/false, /*create_graph=*/false);
}

std::vector<Value> SimAutograd::function(std::span<const Value> inputs, std::vector<Value> outputs,
                                         HostBackward backward) {
  const bool needed =
      state_->grad_mode() && std::any_of(inputs.begin(), inputs.end(),
                                         [](const Value& input) { return bool(input.edge); });
  if (!needed) return outputs;
  const std::shared_ptr<Node> node = state_->new_node("checkpoint");
  node->host_backward = std::move(backward);
  node->outputs = static_cast<std::uint32_t>(outputs.size());
  for (const Value& input : inputs) {
    node->next.push_back(input.edge);
    node->saved.push_back(state_->save(node->name, input));
  }
  for (std::uint32_t i = 0; i < outputs.size(); ++i) {
    outputs[i].edge = {node, i};
    node->output_layouts.push_back(outputs[i].tensor ? outputs[i].tensor->layout : TensorLayout{});
  }
  return outputs;
}

}  // namespace ferry::sim
