// Records the graph: each node once an op has made it. Hooks before and after the node show when a
// backward runs it.
//
// The number of a node is its sequence number, counted from the start of the capture. A backward
// has begun when a node runs in another task of LibTorch's engine than the last node. If a backward
// has several roots, it begins when the engine's own root node runs.

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "ferry/capture.h"
#include "real/capture/op_call.h"
#include "real/capture/recorder.h"
#include "real/tensors/torch_error.h"

namespace ferry::real::capture {

namespace autograd = torch::autograd;

// Nodes own these two hooks. After the end of the recording they do nothing.
class Recorder::Entering final : public autograd::FunctionPreHook {
 public:
  Entering(std::shared_ptr<Recorder> recorder, const autograd::Node& node)
      : recorder_(std::move(recorder)), node_(&node) {}
  autograd::variable_list operator()(const autograd::variable_list& gradients) override {
    recorder_->entering(*node_, gradients);
    return gradients;
  }

 private:
  const std::shared_ptr<Recorder> recorder_;
  const autograd::Node* const node_;
};

class Recorder::Leaving final : public autograd::FunctionPostHook {
 public:
  Leaving(std::shared_ptr<Recorder> recorder, const autograd::Node& node)
      : recorder_(std::move(recorder)), node_(&node) {}
  autograd::variable_list operator()(const autograd::variable_list& results,
                                     const autograd::variable_list&) override {
    recorder_->leaving(*node_, results);
    return results;
  }

 private:
  const std::shared_ptr<Recorder> recorder_;
  const autograd::Node* const node_;
};

std::string Recorder::short_name(const autograd::Node& node) {
  const std::string name = node.name();
  constexpr std::string_view kPrefix = "torch::autograd::";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

void Recorder::results(const std::vector<c10::IValue>& outputs) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || autograd::get_current_graph_task_id() != kNoTask) return;
  for (const c10::IValue& output : outputs) {
    each_tensor(output, [&](const at::Tensor& tensor) {
      // Do not use tensor.grad_fn(): for a view that was written it creates a node at the wrong
      // time.
      autograd::Node* const function = autograd::impl::grad_fn_unsafe(tensor);
      if (!function) return;
      note(function);
      if (tensor.has_storage() && storages_.knows(tensor.storage())) {
        const Output from{number_of(*function), static_cast<std::uint32_t>(tensor.output_nr())};
        trace_.tensors.insert_or_assign(from, ref(tensor, Birth::kMet, "a result"));
      }
    });
  }
}

void Recorder::entering(const autograd::Node& node, const autograd::variable_list& gradients) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  check();
  const int task = autograd::get_current_graph_task_id();
  if (open_node_) {
    throw torch_error(CaptureError(short_name(node) + " runs inside " + short_name(*open_node_) +
                                   ": a backward inside a backward cannot be captured"));
  }
  if (open_task_ != task) {
    std::vector<Output> roots;
    for (std::uint32_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) roots.push_back({number_of(node), i});
    }
    begin_backward(std::move(roots), gradients);
  }
  look_around();
  open_node_ = &node;
  open_number_ = number_of(node);
  const auto [body, first] = trace_.bodies.try_emplace(open_number_);
  open_body_ = first ? &body->second : &(ignored_ = Body{});
  for (const at::Tensor& gradient : gradients)
    open_body_->arguments.push_back(seen(gradient, node));
}

void Recorder::leaving(const autograd::Node& node, const autograd::variable_list& results) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || open_node_ != &node) return;
  for (const at::Tensor& result : results) open_body_->results.push_back(seen(result, node));
  open_node_ = nullptr;
  open_body_ = nullptr;
}

std::optional<Ref> Recorder::seen(const at::Tensor& gradient, const autograd::Node& node) {
  if (!gradient.defined()) return std::nullopt;
  return ref(gradient, Birth::kMet, short_name(node));
}

// If a backward has several roots, the engine's root node runs first.
void Recorder::running(const NodePointer& node) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || !node || dynamic_cast<const autograd::AccumulateGrad*>(node.get())) return;
  if (short_name(*node) == "GraphRoot") {
    std::vector<Output> roots;
    for (const autograd::Edge& edge : node->next_edges()) {
      if (!edge.function) continue;
      note(edge.function.get());
      const Edge root = edge_of(edge);
      if (const auto* const output = std::get_if<Output>(&root)) roots.push_back(*output);
    }
    begin_backward(std::move(roots), {});
  } else if (open_node_ != node.get()) {
    fail_later(short_name(*node) + " runs in backward and was not seen in forward: add an op " +
               "of LibTorch's behind a custom function");
  }
}

void Recorder::begin_backward(std::vector<Output> roots, const autograd::variable_list& gradients) {
  open_task_.reset();
  look_around();  // storages that are dead now died before this backward
  if (c10::GradMode::is_enabled()) {
    throw torch_error(
        CaptureError("a backward that makes a graph (create_graph) cannot be captured"));
  }
  const auto* const wanted = autograd::get_current_graph_task_exec_info();
  if (wanted && !wanted->empty()) {
    throw torch_error(
        CaptureError("a backward for given inputs (torch::autograd::grad) cannot be captured"));
  }
  for (const at::Tensor& gradient : gradients) {
    if (gradient.defined()) forget_maker(gradient);
  }
  trace_.events.emplace_back(
      BackwardEvent{made(), std::move(roots), autograd::get_current_graph_task_keep_graph()});
  open_task_ = autograd::get_current_graph_task_id();
  ++backwards_;
}

// The engine makes the gradient of the root. The op that made it is not part of the step.
void Recorder::forget_maker(const at::Tensor& gradient) {
  if (!gradient.has_storage() || !storages_.knows(gradient.storage())) return;
  const StorageNumber made = ref(gradient, Birth::kMet, "a gradient").storage;
  auto& events = trace_.events;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const auto* const op = std::get_if<OpEvent>(&*event);
    if (!op) continue;
    for (const Ref& in : op->in) {
      if (in.storage == made) return;  // the storage has another use
    }
    if (op->out.size() == 1 && op->out[0].storage == made) {
      events.erase(std::next(event).base());
      return;
    }
  }
}

// Records the graph from this node backward, each node once.
void Recorder::note(autograd::Node* function) {
  std::vector<autograd::Node*> open{function};
  while (!open.empty()) {
    autograd::Node* const node = open.back();
    open.pop_back();
    if (dynamic_cast<const autograd::AccumulateGrad*>(node)) continue;
    const NodeNumber number = number_of(*node);
    if (number < 0) {
      fail_later("the graph of the step leads to " + short_name(*node) +
                 ", which was made before it: give the step detached inputs");
      continue;
    }
    const auto [info, fresh] = trace_.nodes.try_emplace(number);
    if (!fresh) continue;
    info->second.name = short_name(*node);
    if (info->second.name == "CopySlices") take_saves(number);
    node->add_pre_hook(std::make_unique<Entering>(shared_from_this(), *node));
    node->add_post_hook(std::make_unique<Leaving>(shared_from_this(), *node));
    for (const autograd::Edge& edge : node->next_edges()) {
      info->second.edges.push_back(edge_of(edge));
      if (edge.function) open.push_back(edge.function.get());
    }
  }
}

// A write to a view creates three nodes, in this order: one for the op, a wrapper of it, and one
// for the view. Saves belong to the first, but happen while the last is the newest.
void Recorder::take_saves(NodeNumber wrapper) {
  for (auto pack = trace_.packs.rbegin(); pack != trace_.packs.rend(); ++pack) {
    if (pack->node < wrapper - 1) return;
    if (pack->node <= wrapper + 1) pack->node = wrapper;
  }
}

Edge Recorder::edge_of(const autograd::Edge& edge) {
  if (!edge.function) return {};
  const auto* const leaf = dynamic_cast<const autograd::AccumulateGrad*>(edge.function.get());
  if (!leaf) return Output{number_of(*edge.function), edge.input_nr};
  const auto number = static_cast<std::uint32_t>(trace_.leaves.size());
  const auto [known, fresh] = leaves_.emplace(leaf->variable.unsafeGetTensorImpl(), number);
  if (fresh) {
    trace_.leaves.push_back({});
    leaf_addresses_.emplace_back(leaf->variable.getIntrusivePtr());
  }
  return Leaf{known->second};
}

NodeNumber Recorder::number_of(const autograd::Node& node) const {
  return static_cast<NodeNumber>(node.sequence_nr()) - start_;
}

NodeNumber Recorder::made() const {
  return static_cast<NodeNumber>(at::sequence_number::peek()) - start_;
}

}  // namespace ferry::real::capture
