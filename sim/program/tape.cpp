// Implements tape.h: runs the statements of codes, spans, the bodies of nodes, and backwards.
#include "sim/program/tape.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "formats/error.h"
#include "formats/hash.h"
#include "formats/limits.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

namespace ferry::sim {

namespace {

constexpr std::size_t kSpareSlots = 1u << 16;  // larger frames are freed

bool keeps(const SpanRange& span, std::size_t statement) {
  return std::binary_search(span.keep.begin(), span.keep.end(), statement);
}

// The span is open while this lives.
class OpenSpan {
 public:
  OpenSpan(std::vector<const SpanRange*>& open, const SpanRange& span) : open_(open) {
    open_.push_back(&span);
  }
  OpenSpan(const OpenSpan&) = delete;
  OpenSpan& operator=(const OpenSpan&) = delete;
  ~OpenSpan() { open_.pop_back(); }

 private:
  std::vector<const SpanRange*>& open_;
};

// While this lives, `place` is the place of the running node.
class ReplacedPlace {
 public:
  ReplacedPlace(std::uint32_t& now, std::uint32_t place)
      : now_(now), before_(std::exchange(now, place)) {}
  ReplacedPlace(const ReplacedPlace&) = delete;
  ReplacedPlace& operator=(const ReplacedPlace&) = delete;
  ~ReplacedPlace() { now_ = before_; }

 private:
  std::uint32_t& now_;
  const std::uint32_t before_;
};

MemoryKind kind_of(GlobalKind kind) {
  switch (kind) {
    case GlobalKind::kParameter:
      return MemoryKind::kParameter;
    case GlobalKind::kBuffer:
      return MemoryKind::kBuffer;
    case GlobalKind::kInput:
      break;
  }
  return MemoryKind::kInput;
}

class RaisedByProgram : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

Tape::Tape(const Program& program, Machine& machine, const KernelTimes& times,
           check::Values* values, std::span<const std::uint32_t> device_of_global,
           const KernelMemory* memory, std::shared_ptr<const Prepared> given)
    : program_(program),
      machine_(machine),
      values_(values),
      own_prepared_(given ? std::move(given)
                          : std::make_shared<Prepared>(prepared(program, times, memory))),
      prepared_(*own_prepared_),
      engine_(machine, *this),
      kernels_(program, prepared_, machine, times, *this, memory),
      saves_(machine, engine_.hooks, values),
      gradients_(program.globals.size()) {
  make_globals(device_of_global);
}

Tape::~Tape() = default;

void Tape::make_globals(std::span<const std::uint32_t> device_of_global) {
  for (Slot slot = 0; slot < program_.globals.size(); ++slot) {
    const std::uint32_t device = slot < device_of_global.size() ? device_of_global[slot] : 0;
    const StreamId stream = machine_.compute_stream(device, 0);
    const Global& global = program_.globals[slot];
    const auto& window = prepared_.windows[global.type];
    Value value;
    machine_.set_place(global.line);
    if (global.alias == kNoSlot) {
      const Storage storage =
          machine_.allocate(window->extent.end, stream, Step::kUser, kind_of(global.kind));
      value.tensor = make_tensor(storage, {window, 0}, machine_.new_version());
      if (values_) values_->write(range_of(storage), fnv1a(global.name) ^ (slot + 1));
    } else {
      const Tensor& base = globals_[global.alias].tensor;
      value.tensor = make_tensor(base->storage, {window, 0}, base->version);
    }
    if (global.requires_grad) {
      value.edge.node = std::make_shared<Node>();
      value.edge.node->name = "AccumulateGrad";
      value.edge.node->id = node_ids_++;
      value.edge.node->sequence = kLeafSequence;
      value.edge.node->stream = stream;
      value.edge.node->leaf = slot;
      value.edge.node->place = global.line;
    }
    globals_.push_back(std::move(value));
  }
}

void Tape::run() {
  main_ = std::make_unique<CodeFrame>(globals_);
  main_->code = program_.main;
  main_->slots.resize(prepared_.codes[program_.main].slots);
  const Code& code = program_.codes[program_.main];
  op_line_ = code.line;
  for (std::size_t i = 0; i < code.statements.size(); ++i) {
    if (const auto* when = std::get_if<When>(&code.statements[i].action)) {
      if (when->recomputing) i += when->count;
      continue;
    }
    const StreamId stream = machine_.current_stream();
    // Only environment and program errors get here. They leave the state of a caught exception.
    const auto caught = [&](std::string message) {
      machine_.set_current_stream(stream);
      grad_mode_ = true;
      errors_.push_back({code.statements[i].line, std::move(message), false, unpacked_});
    };
    unpacked_ = 0;
    try {
      if (std::holds_alternative<Call>(code.statements[i].action) && before_call_) before_call_();
      run_statement(*main_, i);
    } catch (const LimitReached& error) {
      errors_.push_back({op_line_, error.what(), true});
      break;
    } catch (const std::exception& error) {
      caught(error.what());
    } catch (const Error& error) {  // from a scheduler that does not know the world
      caught(std::string(error.what()) +
             " (thrown alone: expected ferry::make_error<Tensor>(…), which programs catch)");
    }
  }
  main_->close();  // before taking away the hooks that these regions hide
}

void Tape::drop_frames() {
  main_.reset();
  for (Value& gradient : gradients_) gradient.edge = {};
}

void Tape::run_statement(CodeFrame& frame, std::size_t index) {
  const Code& code = program_.codes[frame.code];
  const Action& action = code.statements[index].action;
  machine_.set_place(code.kind == CodeKind::kBody ? node_place_ : code.statements[index].line);
  if (const auto* op = std::get_if<Op>(&action)) {
    op_line_ = program_.codes[frame.code].statements[index].line;
    return run_op_under(op_scopes_.size(), frame, index, *op);
  }
  if (const auto* view = std::get_if<View>(&action)) return kernels_.run_view(frame, *view);
  if (const auto* free = std::get_if<Free>(&action)) {
    for (const Slot slot : free->slots) frame.at(slot) = {};
  } else if (const auto* make = std::get_if<MakeNode>(&action)) {
    make_node(frame, *make);
  } else if (const auto* saves = std::get_if<Save>(&action)) {
    const std::shared_ptr<Node> node = frame.nodes.lock(saves->node);
    if (!node) return;  // no output of it was kept, or grad mode was off, or nothing required grad
    for (const Slot slot : saves->slots) save(frame, *node, slot);
  } else if (const auto* call = std::get_if<Call>(&action)) {
    run_call(frame, *call);
  } else if (const auto* backward = std::get_if<Backward>(&action)) {
    run_backward(frame, *backward);
  } else if (const auto* exclude = std::get_if<Exclude>(&action)) {
    if (exclude->begin) {
      frame.excluded.push_back(std::make_unique<NoHooksGuard<SimAutograd>>(autograd()));
    } else {
      frame.excluded.pop_back();
    }
  } else if (const auto* stream = std::get_if<SetStream>(&action)) {
    machine_.set_current_stream(compute_stream(stream->stream));
  } else if (const auto* sync = std::get_if<Sync>(&action)) {
    machine_.wait(Step::kUser, compute_stream(sync->to),
                  machine_.record(Step::kUser, compute_stream(sync->from)));
  } else if (const auto* use = std::get_if<RecordUse>(&action)) {
    const Tensor& tensor = frame.at(use->slot).tensor;
    if (!tensor) throw std::runtime_error("a use of a slot that holds no tensor");
    machine_.record_use(Step::kUser, tensor->storage, compute_stream(use->stream));
  } else if (const auto* raise = std::get_if<Raise>(&action)) {
    throw RaisedByProgram(raise->message);
  } else if (const auto* move = std::get_if<Move>(&action)) {
    kernels_.move(globals_[move->global].tensor);
  } else if (const auto* ambient = std::get_if<Ambient>(&action)) {
    kernels_.ambient.ambient = ambient->state;
  }
}

// Runs the op under the first `scopes` scopes, the outermost ones.
void Tape::run_op_under(std::size_t scopes, CodeFrame& frame, std::size_t index, const Op& op) {
  if (scopes == 0) return run_op(frame, index, op);
  OpCall call{op, frame, kernels_.ambient,
              [&, scopes] { run_op_under(scopes - 1, frame, index, op); }};
  op_scopes_[scopes - 1](call);
}

void Tape::run_op(CodeFrame& frame, std::size_t index, const Op& op) {
  if (listeners_.empty()) {
    kernels_.run_op(frame, index, op);
    return;
  }
  RanOp ran;
  std::vector<bool> present;
  for (std::size_t i = 0; i < op.in.size(); ++i) {
    const Tensor& tensor = frame.at(op.in[i]).tensor;
    present.push_back(tensor != nullptr);
    const bool written = std::find(op.writes.begin(), op.writes.end(), i) != op.writes.end();
    if (tensor) ran.inputs.push_back({tensor, written});
  }
  const std::uint64_t tag = kernels_.run_op(frame, index, op);
  for (const Slot slot : op.out) ran.outputs.push_back(frame.at(slot).tensor);
  RanOp::Run again;
  if (!op.once) again = run_again(frame.code, index, tag, std::move(present));
  // The last listeners are those of the planned spans. If one keeps an op, others may recompute it.
  const std::size_t others = listeners_.size() - std::min(listeners_.size(), open_spans_.size());
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    const bool kept = i >= others && keeps(*open_spans_[i - others], index);
    ran.run = kept ? nullptr : again;
    listeners_[i](ran);
  }
}

// Returns a function that recomputes an op with its `tag`. `present`: which of its inputs are
// tensors.
std::function<std::vector<Tensor>(const std::vector<Tensor>&)> Tape::run_again(
    CodeId code, std::size_t index, std::uint64_t tag, std::vector<bool> present) {
  return
      [this, code, index, tag, present = std::move(present)](const std::vector<Tensor>& tensors) {
        std::vector<Tensor> inputs(present.size());
        std::size_t next = 0;
        for (std::size_t i = 0; i < present.size(); ++i) {
          if (present[i]) inputs[i] = tensors[next++];
        }
        const Op& again = std::get<Op>(program_.codes[code].statements[index].action);
        if (static_cast<std::int64_t>(again.in.size() + again.out.size()) >
            machine_.options().work_most - work_) {
          throw LimitReached("the spans of a step recompute too many ops");
        }
        work_ += static_cast<std::int64_t>(again.in.size() + again.out.size());
        machine_.set_place(program_.codes[code].statements[index].line);
        return kernels_.run_again(code, index, again, tag, inputs);
      };
}

void Tape::make_node(CodeFrame& frame, const MakeNode& make) {
  const bool needed = grad_mode_ && std::any_of(make.in.begin(), make.in.end(), [&](Slot s) {
                        return static_cast<bool>(frame.at(s).edge);
                      });
  if (!needed) return;
  const std::shared_ptr<Node> node = new_node(make.name);
  node->body = make.body;
  node->outputs = static_cast<std::uint32_t>(make.out.size());
  node->next.reserve(make.in.size());
  node->saved.reserve(make.saved.size());
  for (const Slot slot : make.in) node->next.push_back(frame.at(slot).edge);
  frame.nodes.set(make.id, node);
  for (std::uint32_t i = 0; i < make.out.size(); ++i) frame.at(make.out[i]).edge = {node, i};
  for (const Slot slot : make.saved) save(frame, *node, slot);
}

std::shared_ptr<Node> Tape::new_node(std::string_view name) {
  auto node = std::make_shared<Node>();
  node->name = name;
  node->id = node_ids_++;
  node->place = machine_.place();
  node->stream = machine_.current_stream();
  node->sequence = sequences_[launch_thread()]++;
  return node;
}

LaunchThread Tape::launch_thread() const {
  if (engine_.graph_task() == GraphTaskId::kNone) return {MadeBy::kHost, machine_.host_thread()};
  return {MadeBy::kEngine, machine_.device_of(machine_.current_stream())};
}

void Tape::save(CodeFrame& frame, Node& node, Slot slot) {
  const Value& value = frame.at(slot);
  // An absent gradient is saved as nothing, as in PyTorch.
  const bool body = program_.codes[frame.code].kind == CodeKind::kBody;
  if (!value.tensor && !body) throw std::runtime_error("a saved slot holds no tensor");
  SavedTensor saved = saves_.save(node.name, value);
  if (value.edge.node.get() == &node) {
    saved.own_output = value.edge.output;
    saved.edge = {};  // an edge would be a cycle
  }
  node.saved.push_back(std::move(saved));
}

void Tape::run_statements(CodeFrame& frame) {
  const bool forward = spans_ && depth_ == 1 && spanned_code(program_) == frame.code;
  static const std::vector<SpanRange> none;
  run_statements(frame, {0, program_.codes[frame.code].statements.size()},
                 forward ? *spans_ : none);
}

void Tape::run_statements(CodeFrame& frame, std::pair<std::size_t, std::size_t> range,
                          const std::vector<SpanRange>& spans) {
  const Code& code = program_.codes[frame.code];
  std::size_t span = 0;
  for (std::size_t i = range.first; i < range.second; ++i) {
    if (span < spans.size() && spans[span].begin == i) {
      run_span(frame, spans[span]);
      i = spans[span++].end - 1;
      continue;
    }
    const auto* when = std::get_if<When>(&code.statements[i].action);
    if (!when) {
      run_statement(frame, i);
    } else if (when->recomputing != checkpoint_context(engine_.hooks).recomputing) {
      i += when->count;
    }
  }
}

void Tape::run_span(CodeFrame& frame, const SpanRange& span) {
  const auto run = [&] {
    // No statement of a span runs another code, so all that runs now belongs to this span.
    const OpenSpan open(open_spans_, span);
    run_statements(frame, {span.begin, span.end}, span.inner);
  };
  if (segments_) return segments_->run_span(listeners_, run);
  run();
}

// A running code. A body may run backward through its own node, and a graph may be traversed again
// and again. Only these limits end that.
class Tape::Running {
 public:
  Running(Tape& tape, const PreparedCode& code) : tape_(tape), slots_(code.slots) {
    if (tape.depth_ == kDepthMax) {
      throw std::runtime_error("codes run in each other, more than " + std::to_string(kDepthMax) +
                               " deep");
    }
    const std::int64_t most = tape.machine_.options().work_most;
    if (code.work > most - tape.work_) {
      throw LimitReached("the codes of a step name at most " + std::to_string(most) +
                         " slots (a code counts as often as it runs), and these name more");
    }
    if (slots_ > limits::kLiveSlots - tape.live_slots_) {
      throw LimitReached("the codes that run at one time have at most " +
                         std::to_string(limits::kLiveSlots) + " slots");
    }
    tape.work_ += code.work;
    tape.live_slots_ += slots_;
    ++tape.depth_;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    --tape_.depth_;
    tape_.live_slots_ -= slots_;
  }

 private:
  static constexpr int kDepthMax = 400;
  Tape& tape_;
  std::size_t slots_;
};

std::vector<Value> Tape::run_code(CodeId id, std::vector<Value> arguments,
                                  std::vector<Value> saved) {
  const Running running(*this, prepared_.codes[id]);
  const Code& code = program_.codes[id];
  CodeFrame frame(globals_);
  frame.code = id;
  if (!spare_slots_.empty()) {
    frame.slots = std::move(spare_slots_.back());
    spare_slots_.pop_back();
  }
  frame.slots.resize(prepared_.codes[id].slots);
  for (std::size_t i = 0; i < code.arguments.size() && i < arguments.size(); ++i) {
    frame.at(code.arguments[i]) = std::move(arguments[i]);
  }
  for (std::size_t i = 0; i < code.saved.size() && i < saved.size(); ++i) {
    frame.at(code.saved[i]) = std::move(saved[i]);
  }
  run_statements(frame);
  std::vector<Value> results;
  results.reserve(code.results.size());
  for (const Slot slot : code.results) {
    results.push_back(slot == kNoSlot ? Value{} : frame.at(slot));
  }
  frame.slots.clear();
  if (frame.slots.capacity() <= kSpareSlots) spare_slots_.push_back(std::move(frame.slots));
  return results;
}

std::vector<Value> Tape::run_node(const std::shared_ptr<Node>& node, std::vector<Value> gradients,
                                  bool grad_mode) {
  const SimAutograd::GradModeScope mode(autograd(), grad_mode);
  // Recomputed operators set places of their own. Afterwards the node's place is set again.
  const ReplacedPlace place(node_place_, node->place);
  machine_.set_place(node->place);
  if (node->host_backward) return run_host_node(*node, std::move(gradients));
  std::vector<Value> saved;
  saved.reserve(node->saved.size());
  for (SavedTensor& entry : node->saved) {
    saved.push_back(unpack_for(*node, entry));
    if (entry.own_output != ~0u) saved.back().edge = {node, entry.own_output};
  }
  // If no gradient comes, a node of PyTorch's own unpacks what it saved, computes nothing and
  // returns no gradients (torch/csrc/autograd/generated/Functions.cpp, any_grad_defined).
  const auto came = [](const Value& gradient) { return gradient.tensor != nullptr; };
  if (prepared_.codes[node->body].reads_arguments && std::ranges::none_of(gradients, came)) {
    return std::vector<Value>(program_.codes[node->body].results.size());
  }
  return run_code(node->body, std::move(gradients), std::move(saved));
}

Value Tape::unpack_for(const Node& node, const SavedTensor& saved) {
  Value value = saves_.unpack(node.name, saved);
  unpacked_ += engine_.depth() == 1 ? 1 : 0;
  return value;
}

std::vector<Value> Tape::run_host_node(Node& node, std::vector<Value> gradients) {
  std::vector<Value> saved;
  for (SavedTensor& entry : node.saved) saved.push_back(unpack_for(node, entry));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const TensorLayout& layout = node.output_layouts[i];
    if (gradients[i].tensor || !layout.window) continue;
    gradients[i].tensor = kernels_.filled("zeros_like", layout, machine_.current_stream());
  }
  return node.host_backward(std::move(saved), std::move(gradients));
}

void Tape::run_call(CodeFrame& frame, const Call& call) {
  std::vector<Value> arguments;
  arguments.reserve(call.in.size());
  for (const Slot slot : call.in) arguments.push_back(frame.at(slot));
  const bool body = program_.codes[frame.code].kind == CodeKind::kBody;
  const SimAutograd::GradModeScope mode(autograd(), grad_mode_ || body);
  std::vector<Value> results;
  if (segments_ && call.recompute == Recompute::kReplay) {
    segments_->run_span(listeners_,
                        [&] { results = run_code(call.code, std::move(arguments), {}); });
  } else if (segments_ && is_segment(call)) {
    results = run_segment(call, std::move(arguments));
  } else {
    results = run_code(call.code, std::move(arguments), {});
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) frame.at(call.out[i]) = std::move(results[i]);
}

std::vector<Value> Tape::run_segment(const Call& call, std::vector<Value> inputs) {
  CoreCheckpointOptions options;
  options.early_stop = call.early_stop;
  options.preserve_rng_state = call.preserve_rng;
  options.determinism_check =
      call.determinism_check ? DeterminismCheck::kDefault : DeterminismCheck::kNone;
  const auto first_captured = inputs.end() - static_cast<std::ptrdiff_t>(call.captured);
  const std::vector<Value> captured(std::make_move_iterator(first_captured),
                                    std::make_move_iterator(inputs.end()));
  inputs.erase(first_captured, inputs.end());
  const auto run = [this, code = call.code, captured](std::vector<Value> arguments) {
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    return run_code(code, std::move(arguments), {});
  };
  if (call.recompute == Recompute::kReentrant) {
    return segments_->run_reentrant(inputs, options, run);
  }
  std::vector<Value> results;
  segments_->run(std::move(inputs), std::move(options), run,
                 [&](std::vector<Value> arguments) { results = run(std::move(arguments)); });
  return results;
}

void Tape::run_backward(CodeFrame& frame, const Backward& backward) {
  const StreamId stream = machine_.current_stream();
  std::vector<GraphEngine::Root> roots;
  roots.reserve(backward.roots.size());
  for (const Slot slot : backward.roots) {
    const Value& root = frame.at(slot);
    if (!root.edge) continue;  // its forward failed, or nothing required grad
    // A root without a tensor is a captured loss: a scalar.
    static const auto scalar = std::make_shared<const Window>(Window{{}, {0, 4}});
    const TensorLayout layout = root.tensor ? root.tensor->layout : TensorLayout{scalar, 0};
    roots.push_back({root.edge, kernels_.filled("ones_like", layout, stream)});
  }
  if (roots.empty()) return;
  std::vector<Edge> wanted;
  wanted.reserve(backward.inputs.size());
  for (const Slot slot : backward.inputs) wanted.push_back(frame.at(slot).edge);
  std::vector<Value> found =
      engine_.run(roots, backward.retain_graph, backward.create_graph, wanted);
  for (std::size_t i = 0; i < backward.out.size() && i < found.size(); ++i) {
    frame.at(backward.out[i]) = std::move(found[i]);
  }
}

}  // namespace ferry::sim
