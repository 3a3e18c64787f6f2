// Implements graph_engine.h: counts dependencies, runs the ready nodes, and adds and passes on
// gradients.
#include "sim/program/graph_engine.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/check/values.h"

namespace ferry::sim {

// A running task. At its end, whatever happened, its callbacks run and it leaves the stack.
class GraphEngine::TaskScope {
 public:
  TaskScope(GraphEngine& engine, Task& task)
      : engine_(engine), task_(task), stream_(engine.machine_.current_stream()) {
    engine_.tasks_.push_back(&task);
    for (TaskWatch* const watch : engine_.task_watches_) watch->task_began();
  }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;
  ~TaskScope() {
    task_.drop_all();
    task_.node = NodeId::kNone;
    engine_.machine_.set_current_stream(stream_);
    for (TaskWatch* const watch : engine_.task_watches_) watch->task_ends();
    for (const auto& callback : task_.after_task) callback();
    engine_.tasks_.pop_back();
    for (TaskWatch* const watch : engine_.task_watches_) watch->task_ended();
  }

 private:
  GraphEngine& engine_;
  Task& task_;
  StreamId stream_;
};

std::vector<Value> GraphEngine::run(std::span<const Root> roots, bool retain_graph,
                                    bool create_graph, std::span<const Edge> wanted) {
  Task task;
  task.id = GraphTaskId{task_ids_++};
  task.retain_graph = retain_graph;
  task.create_graph = create_graph;
  task.wanted = wanted;
  task.found.resize(wanted.size());
  const StreamId caller = machine_.current_stream();
  const TaskScope scope(*this, task);
  count(task, roots);
  for (const Root& root : roots) flow(task, root.edge, {root.gradient, {}}, caller);
  run_ready(task);
  for (const StreamId leaf : task.leaf_streams) {
    if (leaf != caller) {
      machine_.wait(Step::kUser, caller, machine_.record(Step::kUser, leaf));
    }
  }
  return std::move(task.found);
}

// Counts the gradients that each node will get. With wanted edges, also finds the nodes that lead
// there.
void GraphEngine::count(Task& task, std::span<const Root> roots) {
  std::vector<Node*> nodes;  // each once
  nodes.reserve(32);
  const std::uint64_t count = ++counts_;
  const auto reach = [&](Node* node) {
    if (node->counted == count) {
      ++node->dependencies;
      return;
    }
    node->counted = count;
    node->dependencies = 1;
    nodes.push_back(node);
  };
  for (const Root& root : roots) reach(root.edge.node.get());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Edge& edge : nodes[i]->next) {
      if (edge) reach(edge.node.get());
    }
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  task.nodes.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    task.nodes[i].id = nodes[i]->id;
    task.nodes[i].dependencies = nodes[i]->dependencies;
  }
  if (!task.wanted.empty()) find_needed(task, nodes);
}

// A node leads only to nodes that were made earlier, and to leaves.
void GraphEngine::find_needed(Task& task, std::span<Node* const> nodes) {
  const auto leads = [&task](const Edge& edge) {
    return edge && (task.nodes[task.place_of(*edge.node)].needed ||
                    std::any_of(task.wanted.begin(), task.wanted.end(), [&](const Edge& each) {
                      return each.node == edge.node && each.output == edge.output;
                    }));
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<Edge>& next = nodes[i]->next;
    task.nodes[i].needed = std::any_of(next.begin(), next.end(), leads);
  }
}

void GraphEngine::flow(Task& task, const Edge& edge, Value gradient, StreamId from) {
  const std::shared_ptr<Node>& node = edge.node;
  machine_.touch(choices::Touched::kNode, node->id, choices::Access::kWrite);
  const std::size_t at = task.place_of(*node);
  Inputs& inputs = task.nodes[at].inputs;
  if (!inputs.node) {
    inputs.node = node;
    inputs.gradients.resize(node->outputs);
  }
  if (gradient.tensor) {
    cross(gradient.tensor, from, node->stream);
    Value& into = inputs.gradients.at(edge.output);
    join(into, std::move(gradient), *node, task.create_graph);
  }
  if (--task.nodes[at].dependencies > 0) return;
  machine_.touch(choices::Touched::kQueue, machine_.device_of(node->stream),
                 choices::Access::kWrite);
  const Ready ready{node->sequence, node->id, at};
  task.ready.insert(std::upper_bound(task.ready.begin(), task.ready.end(), ready), ready);
  task.nodes[at].ready = true;
}

void GraphEngine::cross(const Tensor& tensor, StreamId from, StreamId to) {
  if (from == to) return;
  machine_.wait(Step::kUser, to, machine_.record(Step::kUser, from));
  machine_.record_use(Step::kUser, tensor->storage, to);
}

// Models PyTorch's InputBuffer::accumulate: adds in place if nobody else has the tensor or its
// storage. (A view's base has its storage.)
void GraphEngine::join(Value& into, Value gradient, const Node& node, bool grad_mode) {
  if (!into.tensor) {
    into = std::move(gradient);
    return;
  }
  const StreamId before = machine_.current_stream();
  machine_.set_current_stream(node.stream);
  const std::array<Range, 2> reads{range_of(into.tensor), range_of(gradient.tensor)};
  const std::int64_t bytes = static_cast<std::int64_t>(reads[0].bytes);
  const bool alone = into.tensor.use_count() == 1 && into.tensor->storage.use_count() == 1 &&
                     !into.tensor->is_view;
  if (alone && !grad_mode) {
    machine_.kernel("add_", check::kSumTag, reads, {reads.data(), 1},
                    runner_.memory_time(3 * bytes));
    ++into.tensor->version->value;
  } else {
    into = add(into, gradient, node.stream, grad_mode);
  }
  machine_.set_current_stream(before);
}

// Adds out of place, on the current stream, which is `stream`. In grad mode the sum can be
// differentiated: both summands get its gradient.
Value GraphEngine::add(const Value& a, const Value& b, StreamId stream, bool grad_mode) {
  const std::array<Range, 2> reads{range_of(a.tensor), range_of(b.tensor)};
  const auto bytes = static_cast<std::int64_t>(reads[0].bytes);
  Tensor sum = make_tensor(
      machine_.allocate(bytes, stream),
      {a.tensor->layout.window, a.tensor->layout.extent().begin + a.tensor->layout.shift},
      machine_.new_version());
  const Range write = range_of(sum);
  machine_.kernel("add", check::kSumTag, reads, {&write, 1}, runner_.memory_time(3 * bytes));
  if (!grad_mode || (!a.edge && !b.edge)) return {std::move(sum), {}};
  std::shared_ptr<Node> node = runner_.new_node("AddBackward");
  node->next = {a.edge, b.edge};
  node->output_layouts.resize(1);  // no layouts: an absent gradient stays absent
  node->host_backward = [](const std::vector<Value>&, const std::vector<Value>& gradients) {
    return std::vector<Value>(2, gradients.front());
  };
  return {std::move(sum), {std::move(node), 0}};
}

// Returns the index of the ready node that runs next. PyTorch has a thread for each device, which
// takes the latest of its nodes; the choices decide which thread goes first.
std::size_t GraphEngine::choose(const Task& task) {
  const std::size_t latest = task.ready.size() - 1;
  if (!machine_.has_choices() || machine_.devices() == 1) return latest;
  std::vector<std::size_t> of_devices;
  std::vector<std::uint32_t> devices;
  std::vector<char> seen(machine_.devices());
  for (std::size_t i = task.ready.size(); i-- > 0;) {
    const Node& node = *task.nodes[task.ready[i].at].inputs.node;
    const std::uint32_t device = machine_.device_of(node.stream);
    if (seen[device]) continue;
    seen[device] = 1;
    of_devices.push_back(i);
    devices.push_back(device);
  }
  return of_devices[machine_.turn(choices::ChoicePoint::kEngine, devices)];
}

void GraphEngine::run_ready(Task& task) {
  const choices::Choices::Row row(machine_.choices());
  while (!task.ready.empty()) run_next(task);
}

// One turn takes a node, with its gradients, from its device's queue and runs it. Then it passes
// gradients to other nodes, which may enter their queues.
void GraphEngine::run_next(Task& task) {
  const auto next = task.ready.begin() + static_cast<std::ptrdiff_t>(choose(task));
  Pending& pending = task.nodes[next->at];
  Inputs inputs = std::move(pending.inputs);
  const std::uint32_t device = machine_.device_of(inputs.node->stream);
  machine_.touch(choices::Touched::kQueue, device, choices::Access::kWrite);
  task.ready.erase(next);
  Node& node = *inputs.node;
  for (std::size_t i = 0; i < task.wanted.size(); ++i) {
    const Edge& edge = task.wanted[i];
    if (edge.node.get() != &node) continue;
    task.found[i] = inputs.gradients.at(edge.output);
    task.sync_from(node.stream);
  }
  const bool needed = task.wanted.empty() || pending.needed;
  if (node.is_leaf()) {
    if (task.wanted.empty() && inputs.gradients.front().tensor) {
      accumulate(task, node, std::move(inputs.gradients.front()));
      if (!node.total) runner_.accumulated(node.leaf);
    }
    return;
  }
  std::vector<Value> results(node.next.size());
  if (needed) {
    if (node.released) {
      throw std::runtime_error(
          "Trying to backward through the graph a second time (or directly access saved tensors "
          "after they have already been freed).");
    }
    machine_.set_current_stream(node.stream);
    task.node = NodeId{++node_runs_};
    task.after_node.clear();
    for (TaskWatch* const watch : task_watches_) watch->node_begins();
    results = runner_.run_node(inputs.node, std::move(inputs.gradients), task.create_graph);
    for (TaskWatch* const watch : task_watches_) watch->node_ran();
    const auto callbacks = std::exchange(task.after_node, {});
    task.results = results;
    for (const auto& callback : callbacks) callback();
    task.results = {};
    task.node = NodeId::kNone;
    if (!task.retain_graph && !task.create_graph) {
      node.released = node.released || !node.saved.empty();  // else it may run again, as in PyTorch
      node.saved.clear();
    }
  }
  for (std::size_t i = 0; i < node.next.size(); ++i) {
    if (node.next[i]) flow(task, node.next[i], std::move(results[i]), node.stream);
  }
}

// Models PyTorch's AccumulateGrad. The first gradient is taken over if nobody else refers to the
// tensor, and else cloned. A further one is added in place, or out of place if a graph is made.
void GraphEngine::accumulate(Task& task, const Node& leaf, Value gradient) {
  task.sync_from(leaf.stream);
  machine_.set_place(leaf.place);
  machine_.set_current_stream(leaf.stream);
  Value& total = leaf.total ? *leaf.total : runner_.gradient_of(leaf.leaf);
  if (!leaf.total) {
    machine_.touch(choices::Touched::kGradient, leaf.leaf, choices::Access::kWrite);
  }
  if (total.tensor) {
    const std::array<Range, 2> reads{range_of(total.tensor), range_of(gradient.tensor)};
    const std::int64_t bytes = static_cast<std::int64_t>(reads[0].bytes);
    if (task.create_graph) {
      total = add(total, gradient, leaf.stream, true);
      machine_.set_kind(*total.tensor->storage, MemoryKind::kGradient);
      return;
    }
    machine_.kernel("add_", check::kSumTag, reads, {reads.data(), 1},
                    runner_.memory_time(3 * bytes));
    ++total.tensor->version->value;
    return;
  }
  if (gradient.tensor.use_count() == 1 && !task.create_graph) {
    total = std::move(gradient);
    machine_.set_kind(*total.tensor->storage, MemoryKind::kGradient);
    return;
  }
  const Range from = range_of(gradient.tensor);
  const auto bytes = static_cast<std::int64_t>(from.bytes);
  const Tensor clone =
      make_tensor(machine_.allocate(bytes, leaf.stream, Step::kUser, MemoryKind::kGradient),
                  {gradient.tensor->layout.window,
                   gradient.tensor->layout.extent().begin + gradient.tensor->layout.shift},
                  machine_.new_version());
  machine_.copy_on_device("clone", from, range_of(clone), runner_.memory_time(2 * bytes));
  total = {clone, gradient.edge};
}

}  // namespace ferry::sim
