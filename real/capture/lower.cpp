#include "real/capture/lower.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "real/capture/bodies.h"
#include "real/capture/frame.h"
#include "real/capture/graph.h"
#include "real/tensors/torch_error.h"

namespace ferry::real::capture {
namespace {

constexpr CodeId kForward = 1;
constexpr CodeId kFirstBody = 2;

class Lowering {
 public:
  Lowering(const Trace& trace, const CaptureOptions& options)
      : trace_(trace),
        types_(program_.types),
        graph_(trace),
        globals_(trace, types_, program_.globals),
        bodies_(trace, graph_, types_, globals_),
        forward_(trace, types_, globals_),
        main_(trace, types_, globals_),
        waiting_(graph_.nodes()) {
    program_.name = options.name();
    program_.about = options.about();
  }

  Program run();

 private:
  void on(const OpEvent& event);
  void on(const DeathEvent& event) { frame_->death(event.storage); }
  void on(const DropEvent& event);
  void on(const BackwardEvent& event);
  void on(const SegmentEvent& event);
  void save_from(std::size_t at);

  void place_before(NodeNumber made, NodeNumber but = -1);
  void make_node(NodeNumber node, std::vector<Slot> saved);
  void save_unhooked();
  Slot edge(const Output& output);
  Slot slot(const Ref& ref);
  bool has_future(NodeNumber node) const;

  void end_forward();
  Slot pass(Slot slot);  // makes a result of forward a slot of main
  void pass_storage(StorageNumber storage);
  bool dies_alone(NodeNumber node) const;

  Program program_;
  const Trace& trace_;
  Types types_;
  Graph graph_;
  Globals globals_;
  Bodies bodies_;
  Frame forward_;
  Frame main_;
  Frame* frame_ = &forward_;
  std::size_t at_ = 0;  // index of the event
  std::uint32_t backwards_ = 0;

  std::set<NodeNumber> waiting_;             // nodes not placed yet
  std::map<NodeNumber, std::uint32_t> ids_;  // ids of the nodes placed in the frame
  std::map<NodeNumber, std::size_t> saved_;  // number of packs so far
  std::map<Output, Slot> edges_;             // slots of edges in the frame
  std::map<Output, Slot> forward_edges_;     // those of forward, once forward is over
  std::map<NodeNumber, std::vector<Ref>> unhooked_;
  std::set<PackNumber> dropped_;
  std::set<Slot> with_tensor_;  // main's edges that are freed together with a tensor
  std::vector<Slot> results_;   // forward's results
  std::vector<Slot> passed_;    // the slots of main for them
};

Program Lowering::run() {
  for (; at_ < trace_.events.size(); ++at_) {
    if (std::holds_alternative<PackEvent>(trace_.events[at_])) {
      save_from(at_);
    } else if (const auto* const op = std::get_if<OpEvent>(&trace_.events[at_])) {
      on(*op);
    } else if (const auto* const death = std::get_if<DeathEvent>(&trace_.events[at_])) {
      on(*death);
    } else if (const auto* const drop = std::get_if<DropEvent>(&trace_.events[at_])) {
      on(*drop);
    } else if (const auto* const backward = std::get_if<BackwardEvent>(&trace_.events[at_])) {
      on(*backward);
    } else if (const auto* const segment = std::get_if<SegmentEvent>(&trace_.events[at_])) {
      on(*segment);
    }
    save_unhooked();
  }
  place_before(std::numeric_limits<NodeNumber>::max());
  save_unhooked();
  if (frame_ == &forward_) end_forward();
  if (!unhooked_.empty()) {
    throw torch_error(
        CaptureError(graph_.name(unhooked_.begin()->first) +
                     " uses a tensor in backward that was not there when it was made: it cannot "
                     "be captured"));
  }
  main_.flush();
  Code main;
  main.kind = CodeKind::kMain;
  main.statements.push_back({Call{kForward, {}, passed_}, 0});
  std::move(main_.statements.begin(), main_.statements.end(), std::back_inserter(main.statements));
  Code forward;
  forward.kind = CodeKind::kSegment;
  forward.name = "forward";
  forward.results = results_;
  forward.statements = std::move(forward_.statements);
  program_.codes = {std::move(main), std::move(forward)};
  for (Code& body : bodies_.codes()) program_.codes.push_back(std::move(body));
  return std::move(program_);
}

void Lowering::on(const OpEvent& event) {
  place_before(event.made);
  for (const Ref& in : event.in) slot(in);
  frame_->op(event);
}

// A node died outside a backward. This frees the slots that hold it, and the neighbouring nodes
// that save nothing.
void Lowering::on(const DropEvent& event) {
  dropped_.insert(event.pack);
  std::vector<NodeNumber> open{trace_.packs[event.pack].node};
  while (!open.empty()) {
    const NodeNumber node = open.back();
    open.pop_back();
    if (waiting_.contains(node) || has_future(node)) continue;
    bool held = false;
    for (std::uint32_t i = 0; i < graph_.outputs(node); ++i) {
      const auto known = edges_.find({node, i});
      if (known == edges_.end() || with_tensor_.contains(known->second)) continue;
      held = true;
      frame_->free(known->second);
      edges_.erase(known);
    }
    if (!held) continue;
    const auto follow = [&](NodeNumber other) {
      if (graph_.packs(other).empty()) open.push_back(other);
    };
    for (const Edge& edge : graph_.edges(node)) {
      if (const auto* const behind = std::get_if<Output>(&edge)) follow(behind->node);
    }
    for (const NodeNumber consumer : graph_.consumers(node)) follow(consumer);
  }
}

void Lowering::on(const BackwardEvent& event) {
  place_before(event.made);
  save_unhooked();
  if (frame_->in_call()) {
    throw torch_error(CaptureError("a backward inside a checkpoint cannot be captured"));
  }
  if (frame_ == &forward_) end_forward();
  // Storages that die in this backward belonged to the graph alone.
  std::vector<StorageNumber> dying;
  for (const auto& [storage, first] : main_.bases()) {
    if (trace_.storages[storage].died_in == backwards_) dying.push_back(storage);
  }
  for (const StorageNumber storage : dying) main_.death(storage);
  Backward backward;
  backward.retain_graph = event.retain_graph;
  for (const Output& root : event.roots) {
    const Slot from = edge(root);
    backward.roots.push_back(from);
    // The tensor of the root gives the type of its gradient. It dies with the holder of the graph.
    const auto tensor = trace_.tensors.find(root);
    if (tensor == trace_.tensors.end() || with_tensor_.contains(from)) continue;
    if (const Slot* const base = main_.base(tensor->second.storage)) {
      main_.emit(View{from, *base, types_.id(tensor->second.layout)});
      main_.own(tensor->second, from);
      with_tensor_.insert(from);
    }
  }
  main_.emit(std::move(backward));
  ++backwards_;
}

// Writes the markers of a module, as captures from Python do. The planner cuts there.
void Lowering::on(const SegmentEvent& event) {
  place_before(event.made);
  if (frame_ != &forward_) return;
  if (!event.enter) {
    frame_->leave();
    frame_->emit(Module{event.name, false});
    return;
  }
  std::vector<Slot> arguments;
  for (const Ref& argument : event.arguments) arguments.push_back(slot(argument));
  frame_->enter(event.arguments, arguments);
  for (const Output& output : event.behind) {
    if (const auto known = edges_.find(output); known != edges_.end()) {
      arguments.push_back(known->second);
    }
  }
  frame_->emit(Module{event.name, true, std::move(arguments)});
}

// Saves the consecutive packs of one node that start at this event.
void Lowering::save_from(std::size_t at) {
  const auto pack_at = [this](std::size_t i) {
    return i < trace_.events.size() ? std::get_if<PackEvent>(&trace_.events[i]) : nullptr;
  };
  const NodeNumber node = trace_.packs[pack_at(at)->pack].node;
  place_before(pack_at(at)->made, node);
  std::vector<Slot> slots;
  for (const PackEvent* pack = pack_at(at); pack && trace_.packs[pack->pack].node == node;
       pack = pack_at(++at)) {
    slots.push_back(slot(trace_.packs[pack->pack].ref));
  }
  at_ = at - 1;
  saved_[node] += slots.size();
  if (waiting_.contains(node)) {
    make_node(node, std::move(slots));
  } else {
    frame_->emit(Save{ids_.at(node), std::move(slots)});
  }
}

// Places the nodes that exist by now, except the one that is about to save.
void Lowering::place_before(NodeNumber made, NodeNumber but) {
  for (auto node = waiting_.begin(); node != waiting_.end() && *node < made;) {
    if (*node == but) {
      ++node;
      continue;
    }
    make_node(*node, {});
    node = waiting_.begin();
  }
}

void Lowering::make_node(NodeNumber number, std::vector<Slot> saved) {
  waiting_.erase(number);
  MakeNode node;
  node.name = graph_.name(number);
  node.saved = std::move(saved);
  for (const Edge& each : graph_.edges(number)) {
    if (const auto* const leaf = std::get_if<Leaf>(&each)) {
      node.in.push_back(globals_.leaf(leaf->number));
    } else if (const auto* const output = std::get_if<Output>(&each)) {
      // If a view was written, LibTorch creates its new node only when another node looks at it,
      // and that one has its number already.
      if (waiting_.contains(output->node)) make_node(output->node, {});
      node.in.push_back(edge(*output));
    }
  }
  for (std::uint32_t i = 0; i < graph_.outputs(number); ++i) {
    node.out.push_back(frame_->fresh());
    edges_[{number, i}] = node.out.back();
  }
  node.id = static_cast<std::uint32_t>(ids_.size());
  ids_[number] = node.id;
  Bodies::Lowered body = bodies_.lower(number);
  node.body = static_cast<CodeId>(kFirstBody + body.body);
  if (!body.unhooked.empty()) unhooked_[number] = std::move(body.unhooked);
  frame_->emit(std::move(node));
}

// Saves tensors that autograd kept by itself: after the packs of their node, once they exist.
void Lowering::save_unhooked() {
  for (auto entry = unhooked_.begin(); entry != unhooked_.end();) {
    const auto& [node, refs] = *entry;
    const bool ready = saved_[node] == graph_.packs(node).size() &&
                       std::all_of(refs.begin(), refs.end(),
                                   [this](const Ref& ref) { return frame_->knows(ref.storage); });
    if (!ready) {
      ++entry;
      continue;
    }
    Save save;
    save.node = ids_.at(node);
    for (const Ref& ref : refs) save.slots.push_back(slot(ref));
    frame_->emit(Exclude{true});
    frame_->emit(std::move(save));
    frame_->emit(Exclude{false});
    entry = unhooked_.erase(entry);
  }
}

Slot Lowering::edge(const Output& output) {
  if (const auto known = edges_.find(output); known != edges_.end()) return known->second;
  const auto before = forward_edges_.find(output);
  if (before == forward_edges_.end()) {
    throw torch_error(
        CaptureError(graph_.name(output.node) +
                     " of the graph is used before it was made, or after it died: it cannot be "
                     "captured"));
  }
  return edges_[output] = pass(before->second);
}

// Returns the slot of an input.
Slot Lowering::slot(const Ref& ref) {
  if (!frame_->knows(ref.storage)) {
    const StorageInfo& info = trace_.storages[ref.storage];
    if (frame_ == &main_ && forward_.base(ref.storage)) {
      pass_storage(ref.storage);
    } else if (info.birth == Birth::kMet && !info.in_backward) {
      frame_->meet(ref);
    } else {
      throw torch_error(CaptureError(
          "the step uses a gradient after its backward (an optimiser?): capture the forward and "
          "the backward alone"));
    }
  }
  return frame_->slot(ref);
}

bool Lowering::has_future(NodeNumber node) const {
  for (const NodeNumber consumer : graph_.consumers(node)) {
    if (waiting_.contains(consumer)) return true;
  }
  for (std::size_t i = at_ + 1; i < trace_.events.size(); ++i) {
    for (const Output& output : held_by(trace_.events[i])) {
      if (output.node == node) return true;
    }
  }
  return false;
}

void Lowering::end_forward() {
  if (!unhooked_.empty()) return;  // reported as an error at the end
  forward_.flush();
  frame_ = &main_;
  forward_edges_ = std::exchange(edges_, {});
  const std::map<NodeNumber, std::uint32_t> made = std::exchange(ids_, {});
  for (const auto& [storage, slot] : forward_.bases()) {
    if (!globals_.base(storage) && !trace_.storages[storage].died_in) pass_storage(storage);
  }
  for (const auto& [node, id] : made) {
    if (!dies_alone(node)) continue;
    for (std::uint32_t i = 0; i < graph_.outputs(node); ++i) {
      if (forward_edges_.contains({node, i})) edge({node, i});
    }
  }
}

Slot Lowering::pass(Slot slot) {
  results_.push_back(slot);
  passed_.push_back(main_.fresh());
  return passed_.back();
}

void Lowering::pass_storage(StorageNumber storage) {
  const auto& [ref, slot] = forward_.first(storage);
  main_.own(ref, pass(slot));
}

// True if saves of the node will die outside a backward.
bool Lowering::dies_alone(NodeNumber node) const {
  const std::vector<PackNumber>& packs = graph_.packs(node);
  if (packs.empty()) return false;
  if (!trace_.bodies.contains(node)) {
    return std::none_of(packs.begin(), packs.end(),
                        [this](PackNumber pack) { return dropped_.contains(pack); });
  }
  return std::any_of(trace_.events.begin() + static_cast<std::ptrdiff_t>(at_), trace_.events.end(),
                     [&](const Event& event) {
                       const auto* const drop = std::get_if<DropEvent>(&event);
                       return drop && trace_.packs[drop->pack].node == node;
                     });
}

}  // namespace

Program lower(const Trace& trace, const CaptureOptions& options) {
  return Lowering(trace, options).run();
}

}  // namespace ferry::real::capture
