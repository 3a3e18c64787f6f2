// The tape: runs a program on a machine, as PyTorch would.
//
// It interprets code (formats/program.h): ops over slots, frames, nodes with their saved tensors,
// and backward bodies. A storage dies when its last slot, saved tensor or gradient dies. An error
// of the program itself (a Raise, a second backward without retain_graph) or of its environment
// (out of memory, an injected fault) ends the outermost Call or Backward of the main code, and is
// recorded. The main code then goes on: the next step must work.
//
// kernels.h runs ops on the machine; saves.h saves and restores tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "formats/spans.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/check/hazard.h"
#include "sim/check/values.h"
#include "sim/gpu/machine.h"
#include "sim/program/autograd.h"
#include "sim/program/code_frame.h"
#include "sim/program/graph.h"
#include "sim/program/graph_engine.h"
#include "sim/program/kernels.h"
#include "sim/program/node_watch.h"
#include "sim/program/prepared.h"
#include "sim/program/saves.h"

namespace ferry::sim {

// An op that has run. `run` recomputes it on other tensors in the same order, with the same random
// numbers, and returns its outputs.
struct RanOp {
  struct Input {
    Tensor tensor;
    bool written = false;
  };
  std::vector<Input> inputs;
  std::vector<Tensor> outputs;
  using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
  Run run;  // null: it must not be recomputed
};
using OpListener = std::function<void(const RanOp&)>;

// An op that is about to run, for scopes that may have its outputs already. `run` calls the scopes
// around and then runs the op; its outputs are then in the frame's slots.
struct OpCall {
  const Op& op;
  CodeFrame& frame;
  AmbientState& ambient;
  std::function<void()> run;
};
using OpScope = std::function<void(OpCall&)>;

// Runs the calls that are checkpoints (shared/checkpoint/checkpointer.h) or spans
// (shared/replay/replayer.h).
class SegmentRunner {
 public:
  using Function = std::function<void(std::vector<Value>)>;
  virtual ~SegmentRunner() = default;
  virtual void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
                   Function forward) = 0;
  virtual std::vector<Value> run_reentrant(
      const std::vector<Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<Value>(std::vector<Value>)> function) = 0;
  // While the function runs, `listeners` may have one more listener, which gets each op.
  virtual void run_span(std::vector<OpListener>& /*listeners*/,
                        const std::function<void()>& function) {
    function();
  }
};

struct ProgramError {
  std::uint32_t line = 0;
  std::string message;
  // The step exceeds the simulator's limits (LimitReached). `line` is then that of the op that
  // does, and the main code ends there.
  bool beyond_limits = false;
  // How many saved tensors the nodes of the statement's own backwards had unpacked by then.
  // (Backwards within a node, or within a recompute, do not count.)
  std::int64_t unpacked = 0;
};

class Tape final : private NodeRunner, private AutogradState, private Launcher {
 public:
  // The program, the machine, the times and the memory must outlive the tape. `values`: null leaves
  // contents unchecked. `device_of_global`: the devices of the first globals. The others are on
  // device 0, and an alias is on the device of its base. `memory`: null: kernels allocate none.
  // `prepared`: made from these; null: the tape makes it.
  Tape(const Program& program, Machine& machine, const KernelTimes& times, check::Values* values,
       std::span<const std::uint32_t> device_of_global = {}, const KernelMemory* memory = nullptr,
       std::shared_ptr<const Prepared> prepared = nullptr);
  ~Tape() override;

  SimAutograd autograd() { return SimAutograd(engine_, this); }
  // Called before each Call of the main code: one Call is one forward.
  void before_call(std::function<void()> callback) { before_call_ = std::move(callback); }

  // Called after each accumulation of a gradient, on the stream of its leaf.
  void after_accumulate(std::function<void(Slot)> callback) {
    after_accumulate_ = std::move(callback);
  }

  // Sets the context of later checkpoints in the calls of the main code.
  void set_checkpoint_context(std::shared_ptr<const CheckpointContext> context) {
    engine_.hooks.checkpoint = std::move(context);
  }
  // Sets the spans of operators in each forward that the main code calls; null: none. Without a
  // runner (set_segments) the statements of a span run like others.
  void set_spans(std::shared_ptr<const std::vector<SpanRange>> spans) { spans_ = std::move(spans); }
  void watch_tasks(std::vector<TaskWatch*> by) { engine_.watch_tasks(std::move(by)); }  // not owned
  void watch_nodes(NodeWatch* by) { node_watch_ = by; }                                 // not owned
  // Sets the runner of checkpoints, which must outlive the tape; null: they run like other calls.
  void set_segments(SegmentRunner* segments) { segments_ = segments; }

  // Each op runs under these scopes; the last is the innermost.
  std::vector<OpScope>& op_scopes() { return op_scopes_; }

  void run();
  // Runs one code on the current stream, for callers that replace the program's main code.
  std::vector<Value> call(CodeId code, std::vector<Value> arguments) {
    return run_code(code, std::move(arguments), {});
  }
  // Drops the main code's frames and graphs. Globals and gradients stay.
  void drop_frames();
  // Drops them as zero_grad does: one after the other, in the order of the globals.
  void drop_gradients() {
    for (Value& gradient : gradients_) gradient = {};
  }

  void drop_gradient(Slot global) { gradients_[global] = {}; }

  const std::vector<Value>& globals() const { return globals_; }
  const std::vector<Value>& gradients() const { return gradients_; }  // one per global
  const std::vector<ProgramError>& errors() const { return errors_; }
  const std::vector<check::Hazard>& hazards() const { return saves_.hazards(); }
  // The node that is saving a tensor now, for listeners to the hooks.
  std::string_view saving_node() const override { return saves_.saving_node(); }
  const Workspaces& workspaces() const { return kernels_.workspaces; }

 private:
  std::vector<Value> run_code(CodeId id, std::vector<Value> arguments, std::vector<Value> saved);
  // Runs the frame's statements, except those that a When hides.
  void run_statements(CodeFrame& frame);
  // Runs those in [first, second). Some of them are in `spans`.
  void run_statements(CodeFrame& frame, std::pair<std::size_t, std::size_t> range,
                      const std::vector<SpanRange>& spans);
  void run_statement(CodeFrame& frame, std::size_t index);
  void run_span(CodeFrame& frame, const SpanRange& span);
  void run_op(CodeFrame& frame, std::size_t index, const Op& op);
  void run_op_under(std::size_t scopes, CodeFrame& frame, std::size_t index, const Op& op);
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> run_again(
      CodeId code, std::size_t index, std::uint64_t tag, std::vector<bool> present);
  void make_node(CodeFrame& frame, const MakeNode& make);
  void save(CodeFrame& frame, Node& node, Slot slot);
  std::vector<Value> run_segment(const Call& call, std::vector<Value> inputs);
  std::vector<Value> run_host_node(Node& node, std::vector<Value> gradients);
  void run_call(CodeFrame& frame, const Call& call);
  void run_backward(CodeFrame& frame, const Backward& backward);

  std::vector<Value> run_node(const std::shared_ptr<Node>& node, std::vector<Value> gradients,
                              bool grad_mode) override;
  Value& gradient_of(Slot global) override { return gradients_[global]; }
  void accumulated(Slot global) override {
    if (after_accumulate_) after_accumulate_(global);
  }
  SavedTensor save(std::string_view name, const Value& value) override {
    return saves_.save(name, value);
  }
  Value unpack_for(const Node& node, const SavedTensor& saved);
  Value unpack(std::string_view name, SavedTensor& saved) override {
    return saves_.unpack(name, saved);
  }
  std::shared_ptr<Node> new_node(std::string_view name) override;
  NodeWatch* node_watch() const override { return node_watch_; }
  Tensor ones_like(const Tensor& tensor) override {
    return kernels_.filled("ones_like", tensor->layout, machine_.current_stream());
  }
  AmbientState& ambient() override { return kernels_.ambient; }
  bool& grad_mode() override { return grad_mode_; }
  std::vector<std::string>*& op_log() override { return kernels_.op_log; }
  KernelTime memory_time(std::int64_t bytes) override { return kernels_.memory_time(bytes); }

  // The thread that launches now. In backward, also in a recompute, it is the engine's, of the
  // stream's device.
  LaunchThread launch_thread() const override;
  void make_globals(std::span<const std::uint32_t> device_of_global);
  // Returns a stream of the device that the code runs on.
  StreamId compute_stream(std::uint32_t number) {
    return machine_.compute_stream(machine_.device_of(machine_.current_stream()), number);
  }

  const Program& program_;
  Machine& machine_;
  check::Values* values_;
  const std::shared_ptr<const Prepared> own_prepared_;  // keeps prepared_ alive
  const Prepared& prepared_;
  GraphEngine engine_;
  Kernels kernels_;
  Saves saves_;
  std::vector<Value> globals_;
  std::vector<Value> gradients_;
  std::unique_ptr<CodeFrame> main_;
  class Running;
  int depth_ = 0;                                // nesting of codes that run now
  std::size_t live_slots_ = 0;                   // slots of their frames
  std::int64_t work_ = 0;                        // of all codes that ran (formats/program_work.h)
  std::uint32_t op_line_ = 0;                    // line of the latest op
  std::uint32_t node_place_ = 0;                 // of the node whose body runs now
  std::vector<std::vector<Value>> spare_slots_;  // slots of frames that ended
  std::uint64_t node_ids_ = 0;
  std::map<LaunchThread, std::uint64_t> sequences_;  // node counts of each thread
  bool grad_mode_ = true;
  NodeWatch* node_watch_ = nullptr;
  SegmentRunner* segments_ = nullptr;
  std::vector<OpScope> op_scopes_;
  std::vector<OpListener> listeners_;  // of the spans that the running code is in
  std::shared_ptr<const std::vector<SpanRange>> spans_;
  std::vector<const SpanRange*> open_spans_;  // those that run now; the outermost first
  std::function<void()> before_call_;
  std::function<void(Slot)> after_accumulate_;
  std::vector<ProgramError> errors_;
  std::int64_t unpacked_ = 0;  // by the main code's present statement
};

}  // namespace ferry::sim
