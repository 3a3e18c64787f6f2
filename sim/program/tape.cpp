#include "sim/program/tape.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "formats/layout.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/hooks.h"
#include "sim/choices/hash.h"

namespace ferry::sim {

namespace {

constexpr std::uint64_t kLeafSequence = std::uint64_t{1} << 63;

// FNV-1a: the same on every platform.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

class RaisedByProgram : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

// What a code's statements cost and compute, found out once.
struct Tape::Prepared {
  std::size_t slots = 0;  // of a frame
  std::vector<Time> durations;
  std::vector<std::uint64_t> tags;
};

struct Tape::Frame {
  CodeId code = 0;
  std::vector<Value> slots;
  std::map<std::uint32_t, std::weak_ptr<Node>> nodes;  // held by edges alone, as in PyTorch
  std::vector<std::unique_ptr<NoHooksGuard<SimAutograd>>> excluded;

  Frame() = default;
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  ~Frame() { close(); }
  // Where a statement threw, regions are still open: the innermost ends first.
  void close() {
    while (!excluded.empty()) excluded.pop_back();
  }
};

Tape::Tape(const Program& program, Machine& machine, const KernelTimes& times,
           check::Values* values, std::span<const std::uint32_t> device_of_global)
    : program_(program),
      machine_(machine),
      times_(times),
      values_(values),
      engine_(machine, *this),
      gradients_(program.globals.size()) {
  for (const Layout& type : program.types) {
    const Hull bytes = hull(type);
    windows_.push_back(
        std::make_shared<Window>(Window{type, {bytes.begin_bytes, bytes.end_bytes}}));
  }
  for (CodeId id = 0; id < program.codes.size(); ++id) {
    auto prepared = std::make_unique<Prepared>();
    const Code& code = program.codes[id];
    Slot last = static_cast<Slot>(program.globals.size());
    const auto see = [&last](Slot slot) {
      if (slot != kNoSlot) last = std::max(last, slot + 1);
    };
    for (const auto* slots : {&code.arguments, &code.saved, &code.results}) {
      std::for_each(slots->begin(), slots->end(), see);
    }
    for (std::size_t i = 0; i < code.statements.size(); ++i) {
      const Action& action = code.statements[i].action;
      Time duration = 0;
      std::uint64_t tag = 0;
      if (const auto* op = std::get_if<Op>(&action)) {
        std::for_each(op->out.begin(), op->out.end(), see);
        const TypeId type = !op->types.empty() ? op->types.front() : TypeId{0};
        duration = times.op_ns(*op, op->types.empty() ? DType::kF32 : program.types[type].dtype);
        tag = hash_of(op->name) ^ (std::uint64_t{id} << 32) ^ i;
      } else if (const auto* view = std::get_if<View>(&action)) {
        see(view->out);
      } else if (const auto* make = std::get_if<MakeNode>(&action)) {
        std::for_each(make->out.begin(), make->out.end(), see);
      } else if (const auto* call = std::get_if<Call>(&action)) {
        std::for_each(call->out.begin(), call->out.end(), see);
      } else if (const auto* backward = std::get_if<Backward>(&action)) {
        std::for_each(backward->out.begin(), backward->out.end(), see);
      }
      prepared->durations.push_back(duration);
      prepared->tags.push_back(tag);
    }
    prepared->slots = last - program.globals.size();
    prepared_.push_back(std::move(prepared));
  }
  make_globals(device_of_global);
}

Tape::~Tape() = default;

void Tape::make_globals(std::span<const std::uint32_t> device_of_global) {
  for (Slot slot = 0; slot < program_.globals.size(); ++slot) {
    const std::uint32_t device = slot < device_of_global.size() ? device_of_global[slot] : 0;
    const StreamId stream = machine_.compute_stream(device, 0);
    const Global& global = program_.globals[slot];
    const auto& window = windows_[global.type];
    Value value;
    if (global.alias == kNoSlot) {
      const Storage storage = machine_.allocate(window->extent.end, stream);
      value.tensor = make_tensor(storage, {window, 0}, machine_.new_version());
      if (values_) values_->write(range_of(storage), hash_of(global.name) ^ (slot + 1));
    } else {
      const Tensor& base = globals_[global.alias].tensor;
      value.tensor = make_tensor(base->storage, {window, 0}, base->version);
    }
    if (global.requires_grad) {
      value.edge.node = std::make_shared<Node>();
      value.edge.node->name = "AccumulateGrad";
      value.edge.node->sequence = kLeafSequence + slot;
      value.edge.node->stream = stream;
      value.edge.node->leaf = slot;
    }
    globals_.push_back(std::move(value));
  }
}

Value& Tape::at(Frame& frame, Slot slot) {
  if (slot < globals_.size()) return globals_[slot];
  return frame.slots[slot - globals_.size()];
}

void Tape::run() {
  main_ = std::make_unique<Frame>();
  main_->code = program_.main;
  main_->slots.resize(prepared_[program_.main]->slots);
  const Code& code = program_.codes[program_.main];
  for (std::size_t i = 0; i < code.statements.size(); ++i) {
    if (const auto* when = std::get_if<When>(&code.statements[i].action)) {
      if (when->recomputing) i += when->count;
      continue;
    }
    const StreamId stream = machine_.current_stream();
    try {
      if (std::holds_alternative<Call>(code.statements[i].action) && before_call_) before_call_();
      run_statement(*main_, i);
    } catch (const std::exception& error) {
      // Only environment and program errors get here; the state is that of a caught exception.
      machine_.set_current_stream(stream);
      grad_mode_ = true;
      errors_.push_back({code.statements[i].line, error.what()});
    }
  }
  main_->close();  // before the hooks that these regions hide are taken away
}

void Tape::drop_frames() {
  main_.reset();
  for (Value& gradient : gradients_) gradient.edge = {};
}

void Tape::run_statement(Frame& frame, std::size_t index) {
  const Action& action = program_.codes[frame.code].statements[index].action;
  if (const auto* op = std::get_if<Op>(&action)) return run_op(frame, index, *op);
  if (const auto* view = std::get_if<View>(&action)) return run_view(frame, *view);
  if (const auto* free = std::get_if<Free>(&action)) {
    for (const Slot slot : free->slots) at(frame, slot) = {};
  } else if (const auto* make = std::get_if<MakeNode>(&action)) {
    make_node(frame, *make);
  } else if (const auto* saves = std::get_if<Save>(&action)) {
    const auto found = frame.nodes.find(saves->node);
    if (found == frame.nodes.end()) return;  // no grad mode, or nothing required grad
    const std::shared_ptr<Node> node = found->second.lock();
    if (!node) return;  // nobody kept an output of it
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
    const Tensor& tensor = at(frame, use->slot).tensor;
    if (!tensor) throw std::runtime_error("a use of a slot that holds no tensor");
    machine_.record_use(Step::kUser, tensor->storage, compute_stream(use->stream));
  } else if (const auto* raise = std::get_if<Raise>(&action)) {
    throw RaisedByProgram(raise->message);
  } else if (const auto* move = std::get_if<Move>(&action)) {
    move_global(move->global);
  } else if (const auto* ambient = std::get_if<Ambient>(&action)) {
    ambient_.ambient = ambient->state;
  }
}

void Tape::run_op(Frame& frame, std::size_t index, const Op& op) {
  const StreamId stream = machine_.current_stream();
  for (std::size_t i = 0; i < op.out.size(); ++i) {
    const auto& window = windows_[op.types[i]];
    at(frame, op.out[i]).tensor = make_tensor(machine_.allocate(window->extent.end, stream),
                                              {window, 0}, machine_.new_version());
  }
  reads_.clear();
  writes_.clear();
  for (const Slot slot : op.in) {
    if (const Tensor& tensor = at(frame, slot).tensor) reads_.push_back(range_of(tensor));
  }
  for (const Slot slot : op.out) writes_.push_back(range_of(at(frame, slot).tensor));
  for (const std::uint32_t position : op.writes) {
    const Tensor& tensor = at(frame, op.in[position]).tensor;
    if (!tensor) continue;
    writes_.push_back(range_of(tensor));
    ++tensor->version->value;
  }
  const Prepared& prepared = *prepared_[frame.code];
  std::uint64_t tag = prepared.tags[index];
  if (ambient_.ambient != 0) tag ^= choices::mix_bits(ambient_.ambient);
  if (op.random) tag ^= choices::mix_bits(~ambient_.random++);
  if (op_log_) log_op(op);
  machine_.kernel(op.name, tag, reads_, writes_, prepared.durations[index]);
}

void Tape::log_op(const Op& op) {
  std::string text = op.name;
  for (const TypeId type : op.types) {
    text += text == op.name ? " ->" : ",";
    for (const std::int64_t size : program_.types[type].shape) text += " " + std::to_string(size);
    text += " " + std::string(name(program_.types[type].dtype));
  }
  op_log_->push_back(std::move(text));
}

void Tape::run_view(Frame& frame, const View& view) {
  const Tensor& base = at(frame, view.of).tensor;
  if (!base) throw std::runtime_error("a view of a slot that holds no tensor");
  // The view's type counts from the start of the storage, which a restored base may not have.
  at(frame, view.out).tensor =
      make_tensor(base->storage, {windows_[view.type], base->layout.shift}, base->version);
}

void Tape::make_node(Frame& frame, const MakeNode& make) {
  const bool needed = grad_mode_ && std::any_of(make.in.begin(), make.in.end(), [&](Slot s) {
                        return static_cast<bool>(at(frame, s).edge);
                      });
  if (!needed) return;
  const std::shared_ptr<Node> node = new_node(make.name);
  node->body = make.body;
  node->outputs = static_cast<std::uint32_t>(make.out.size());
  for (const Slot slot : make.in) node->next.push_back(at(frame, slot).edge);
  frame.nodes[make.id] = node;
  for (std::uint32_t i = 0; i < make.out.size(); ++i) at(frame, make.out[i]).edge = {node, i};
  for (const Slot slot : make.saved) save(frame, *node, slot);
}

std::shared_ptr<Node> Tape::new_node(std::string_view name) {
  auto node = std::make_shared<Node>();
  node->name = name;
  node->sequence = sequence_++;
  node->stream = machine_.current_stream();
  return node;
}

void Tape::save(Frame& frame, Node& node, Slot slot) {
  const Value& value = at(frame, slot);
  // (A gradient that nobody gave is saved as nothing, as in PyTorch.)
  const bool body = program_.codes[frame.code].kind == CodeKind::kBody;
  if (!value.tensor && !body) throw std::runtime_error("a saved slot holds no tensor");
  SavedTensor saved = save(node.name, value);
  if (value.edge.node.get() == &node) {
    saved.own_output = value.edge.output;
    saved.edge = {};  // that would be a cycle
  }
  node.saved.push_back(std::move(saved));
}

SavedTensor Tape::save(std::string_view name, const Value& value) {
  SavedTensor saved;
  saved.edge = value.edge;
  if (!value.tensor) return saved;
  if (values_) {
    saved.contents = values_->read(range_of(value.tensor));
    saved.window = value.tensor->layout.window;
  }
  saving_node_ = name;
  try {
    saved.packed = engine_.hooks.pack(value.tensor);
  } catch (...) {
    saving_node_ = {};
    throw;
  }
  saving_node_ = {};
  if (!saved.packed) {
    saved.plain = std::make_shared<TensorImpl>(*value.tensor);
    saved.version_at_save = value.tensor->version->value;
  }
  return saved;
}

Value Tape::unpack(std::string_view name, SavedTensor& saved) {
  Value value;
  value.edge = saved.edge;
  if (saved.packed) {
    value.tensor = saved.packed->unpack();
  } else if (saved.plain) {
    if (saved.plain->version->value != saved.version_at_save) {
      throw ModifiedInPlace(saved.plain->version->value, saved.version_at_save);
    }
    value.tensor = saved.plain;
  } else {
    return value;
  }
  if (values_) check_unpacked(name, saved, value.tensor);
  return value;
}

// Equal contents under other strides are other values, too.
void Tape::check_unpacked(std::string_view name, const SavedTensor& saved, const Tensor& tensor) {
  const Layout& before = saved.window->layout;
  const Layout& now = tensor->layout.window->layout;
  const bool same_layout =
      before.dtype == now.dtype && before.shape == now.shape && before.strides == now.strides;
  if (same_layout && values_->read(range_of(tensor)) == saved.contents) return;
  check::Hazard hazard;
  hazard.kind = check::HazardKind::kValue;
  hazard.later.name = name;
  hazard.later.stream = machine_.current_stream();
  hazard.range = range_of(tensor);
  hazard.message = "wrong value: a tensor that ";
  hazard.message += name;
  hazard.message += same_layout ? " saved came back with other contents"
                                : " saved came back with another shape, type or strides";
  wrong_values_.report(std::move(hazard));
}

void Tape::run_statements(Frame& frame) {
  const Code& code = program_.codes[frame.code];
  for (std::size_t i = 0; i < code.statements.size(); ++i) {
    const auto* when = std::get_if<When>(&code.statements[i].action);
    if (!when) {
      run_statement(frame, i);
    } else if (when->recomputing != checkpoint_context(engine_.hooks).recomputing) {
      i += when->count;
    }
  }
}

// A body may go backward through a node whose body it is: nothing but this ends that.
class Tape::Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) {
    if (depth_ == kDepthMax) {
      throw std::runtime_error("codes run in each other, more than " + std::to_string(kDepthMax) +
                               " deep");
    }
    ++depth_;
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { --depth_; }

 private:
  static constexpr int kDepthMax = 400;
  int& depth_;
};

std::vector<Value> Tape::run_code(CodeId id, std::vector<Value> arguments,
                                  std::vector<Value> saved) {
  const Deeper deeper(depth_);
  const Code& code = program_.codes[id];
  Frame frame;
  frame.code = id;
  if (!spare_slots_.empty()) {
    frame.slots = std::move(spare_slots_.back());
    spare_slots_.pop_back();
  }
  frame.slots.resize(prepared_[id]->slots);
  for (std::size_t i = 0; i < code.arguments.size() && i < arguments.size(); ++i) {
    at(frame, code.arguments[i]) = std::move(arguments[i]);
  }
  for (std::size_t i = 0; i < code.saved.size() && i < saved.size(); ++i) {
    at(frame, code.saved[i]) = std::move(saved[i]);
  }
  run_statements(frame);
  std::vector<Value> results;
  results.reserve(code.results.size());
  for (const Slot slot : code.results) {
    results.push_back(slot == kNoSlot ? Value{} : at(frame, slot));
  }
  frame.slots.clear();
  spare_slots_.push_back(std::move(frame.slots));
  return results;
}

std::vector<Value> Tape::run_node(const std::shared_ptr<Node>& node, std::vector<Value> gradients,
                                  bool grad_mode) {
  const SimAutograd::GradModeScope mode(autograd(), grad_mode);
  if (node->host_backward) return run_host_node(*node, std::move(gradients));
  std::vector<Value> saved;
  saved.reserve(node->saved.size());
  for (SavedTensor& entry : node->saved) {
    saved.push_back(unpack(node->name, entry));
    if (entry.own_output != ~0u) saved.back().edge = {node, entry.own_output};
  }
  return run_code(node->body, std::move(gradients), std::move(saved));
}

std::vector<Value> Tape::run_host_node(Node& node, std::vector<Value> gradients) {
  std::vector<Value> saved;
  for (SavedTensor& entry : node.saved) saved.push_back(unpack(node.name, entry));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const TensorLayout& layout = node.output_layouts[i];
    if (gradients[i].tensor || !layout.window) continue;
    gradients[i].tensor = filled("zeros_like", layout, machine_.current_stream());
  }
  return node.host_backward(std::move(saved), std::move(gradients));
}

// A tensor of this layout, alone on a storage of its size.
Tensor Tape::filled(std::string_view op, TensorLayout layout, StreamId stream) {
  layout.shift += layout.extent().begin;
  const std::int64_t bytes = layout.extent().bytes();
  const Tensor tensor =
      make_tensor(machine_.allocate(bytes, stream), layout, machine_.new_version());
  const Range write = range_of(tensor);
  machine_.kernel(op, hash_of(op), {}, {&write, 1}, memory_ns(bytes));
  return tensor;
}

void Tape::run_call(Frame& frame, const Call& call) {
  std::vector<Value> arguments;
  for (const Slot slot : call.in) arguments.push_back(at(frame, slot));
  const bool body = program_.codes[frame.code].kind == CodeKind::kBody;
  const SimAutograd::GradModeScope mode(autograd(), grad_mode_ || body);
  std::vector<Value> results = segments_ && call.recompute != Recompute::kNone
                                   ? run_segment(call, std::move(arguments))
                                   : run_code(call.code, std::move(arguments), {});
  for (std::size_t i = 0; i < call.out.size(); ++i) at(frame, call.out[i]) = std::move(results[i]);
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

void Tape::run_backward(Frame& frame, const Backward& backward) {
  if (backward_began_ < 0) backward_began_ = machine_.host_now();
  const StreamId stream = machine_.current_stream();
  std::vector<GraphEngine::Root> roots;
  for (const Slot slot : backward.roots) {
    const Value& root = at(frame, slot);
    if (!root.edge) continue;  // its forward failed, or nothing required grad
    // A root without a tensor is a captured loss: a scalar.
    static const auto scalar = std::make_shared<const Window>(Window{{}, {0, 4}});
    const TensorLayout layout = root.tensor ? root.tensor->layout : TensorLayout{scalar, 0};
    roots.push_back({root.edge, filled("ones_like", layout, stream)});
  }
  if (roots.empty()) return;
  std::vector<Edge> wanted;
  for (const Slot slot : backward.inputs) wanted.push_back(at(frame, slot).edge);
  std::vector<Value> found =
      engine_.run(roots, backward.retain_graph, backward.create_graph, wanted);
  for (std::size_t i = 0; i < backward.out.size() && i < found.size(); ++i) {
    at(frame, backward.out[i]) = std::move(found[i]);
  }
}

void Tape::move_global(Slot slot) {
  const Tensor& tensor = globals_[slot].tensor;
  const Storage from = tensor->storage;
  const Storage to = machine_.allocate(from->bytes, machine_.current_stream());
  machine_.copy_on_device("move", range_of(from), range_of(to), memory_ns(2 * from->bytes));
  tensor->storage = to;
}

Time Tape::memory_ns(std::int64_t bytes) {
  Op op;
  op.read_bytes = bytes;
  return times_.op_ns(op, DType::kF32);
}

}  // namespace ferry::sim
