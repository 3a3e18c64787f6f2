// The tape: runs a program on a machine, as PyTorch would.
//
// It interprets code (formats/program.h): ops over slots, frames, nodes with their saved tensors,
// backward bodies. A storage dies when its last slot, saved tensor or gradient dies. What a program
// does wrong in its own right (a Raise, a second backward without retain_graph) and what goes wrong
// under it (out of memory, an injected fault) ends the outermost Call or Backward of the main code,
// is noted, and the main code goes on: the next step must work.
//
// With Values, every saved tensor's contents are compared with what they were when it was saved.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/check/hazard.h"
#include "sim/check/values.h"
#include "sim/gpu/machine.h"
#include "sim/program/autograd.h"
#include "sim/program/graph.h"
#include "sim/program/graph_engine.h"

namespace ferry::sim {

// How long things take. A program's measured times are the implementation's to respect.
class KernelTimes {
 public:
  virtual ~KernelTimes() = default;
  virtual Time op_ns(const Op& op, DType computes_in) const = 0;
};

// Runs the calls that are checkpoints (shared/checkpoint/checkpointer.h).
class SegmentRunner {
 public:
  using Function = std::function<void(std::vector<Value>)>;
  virtual ~SegmentRunner() = default;
  virtual void run(std::vector<Value> inputs, CoreCheckpointOptions options, Function function,
                   Function forward) = 0;
  virtual std::vector<Value> run_reentrant(
      const std::vector<Value>& inputs, const CoreCheckpointOptions& options,
      std::function<std::vector<Value>(std::vector<Value>)> function) = 0;
};

struct ProgramError {
  std::uint32_t line = 0;
  std::string message;
};

class Tape final : private NodeRunner, private AutogradState {
 public:
  // The program, the machine and the times outlive the tape. `values`: none, unchecked. Globals are
  // on the machine's devices as said; past the end on device 0, and aliases with what they alias.
  Tape(const Program& program, Machine& machine, const KernelTimes& times, check::Values* values,
       std::span<const std::uint32_t> device_of_global = {});
  ~Tape() override;

  SimAutograd autograd() { return SimAutograd(engine_, this); }
  // Before each Call of the main code: one is one forward.
  void before_call(std::function<void()> callback) { before_call_ = std::move(callback); }

  // What checkpoints see from now on, in the calls that the main code makes.
  void set_checkpoint_context(std::shared_ptr<const CheckpointContext> context) {
    engine_.hooks.checkpoint = std::move(context);
  }
  // Who runs the checkpoints; none: nobody, and they run as other calls do. Outlives the tape.
  void set_segments(SegmentRunner* segments) { segments_ = segments; }

  void run();
  // Runs one code, on the current stream: of a program whose main code somebody else is.
  std::vector<Value> call(CodeId code, std::vector<Value> arguments) {
    return run_code(code, std::move(arguments), {});
  }
  // Drops what the main code left: frames, graphs. Globals and gradients stay.
  void drop_frames();

  const std::vector<Value>& globals() const { return globals_; }
  const std::vector<Value>& gradients() const { return gradients_; }  // of each global
  const std::vector<ProgramError>& errors() const { return errors_; }
  const std::vector<check::Hazard>& hazards() const { return wrong_values_.hazards(); }
  // The node that is saving a tensor now: for who listens to the hooks.
  std::string_view saving_node() const override { return saving_node_; }
  Time backward_began() const { return backward_began_; }  // host time of the first; -1: none

 private:
  struct Prepared;
  struct Frame;

  std::vector<Value> run_code(CodeId id, std::vector<Value> arguments, std::vector<Value> saved);
  // Runs all of the frame's statements, of which When hides some.
  void run_statements(Frame& frame);
  void run_statement(Frame& frame, std::size_t index);
  void run_op(Frame& frame, std::size_t index, const Op& op);
  void log_op(const Op& op);
  Tensor filled(std::string_view op, TensorLayout layout, StreamId stream);
  void run_view(Frame& frame, const View& view);
  void make_node(Frame& frame, const MakeNode& make);
  void save(Frame& frame, Node& node, Slot slot);
  std::vector<Value> run_segment(const Call& call, std::vector<Value> inputs);
  std::vector<Value> run_host_node(Node& node, std::vector<Value> gradients);
  void run_call(Frame& frame, const Call& call);
  void run_backward(Frame& frame, const Backward& backward);
  void move_global(Slot slot);

  std::vector<Value> run_node(const std::shared_ptr<Node>& node, std::vector<Value> gradients,
                              bool grad_mode) override;
  Value& gradient_of(Slot global) override { return gradients_[global]; }
  SavedTensor save(std::string_view name, const Value& value) override;
  Value unpack(std::string_view name, SavedTensor& saved) override;
  std::shared_ptr<Node> new_node(std::string_view name) override;
  Tensor ones_like(const Tensor& tensor) override {
    return filled("ones_like", tensor->layout, machine_.current_stream());
  }
  AmbientState& ambient() override { return ambient_; }
  bool& grad_mode() override { return grad_mode_; }
  std::vector<std::string>*& op_log() override { return op_log_; }
  Time memory_ns(std::int64_t bytes) override;

  void check_unpacked(std::string_view name, const SavedTensor& saved, const Tensor& tensor);
  void make_globals(std::span<const std::uint32_t> device_of_global);
  Value& at(Frame& frame, Slot slot);
  // Of the device that the code runs on.
  StreamId compute_stream(std::uint32_t number) {
    return machine_.compute_stream(machine_.device_of(machine_.current_stream()), number);
  }

  const Program& program_;
  Machine& machine_;
  const KernelTimes& times_;
  check::Values* values_;
  GraphEngine engine_;
  std::vector<std::shared_ptr<const Window>> windows_;  // by TypeId
  std::vector<std::unique_ptr<Prepared>> prepared_;     // by CodeId
  std::vector<Value> globals_;
  std::vector<Value> gradients_;
  std::unique_ptr<Frame> main_;
  class Deeper;
  int depth_ = 0;                                // of codes that run now
  std::vector<std::vector<Value>> spare_slots_;  // of frames that ended
  std::vector<Range> reads_;                     // scratch
  std::vector<Range> writes_;
  std::uint64_t sequence_ = 0;
  AmbientState ambient_;
  bool grad_mode_ = true;
  std::vector<std::string>* op_log_ = nullptr;
  SegmentRunner* segments_ = nullptr;
  std::string_view saving_node_;
  std::function<void()> before_call_;
  std::vector<ProgramError> errors_;
  check::HazardLog wrong_values_;
  Time backward_began_ = -1;
};

}  // namespace ferry::sim
