// The simulated autograd, as the core sees it (shared/seam/autograd.h): a handle on the engine
// (graph_engine.h), which runs backward, and on the state of the tape, which saves tensors. Without
// that state only an offloader can use it: checkpoints and pipelines need it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "sim/program/graph_engine.h"
#include "sim/program/node_watch.h"

namespace ferry::sim {

// The state of the thread that a recompute restores.
struct AmbientState {
  std::uint64_t random = 0;  // state of the generator
  std::uint32_t ambient = 0;
};

// The parts of autograd outside the engine: saving a tensor, and the thread's state.
class AutogradState {
 public:
  virtual ~AutogradState() = default;
  // Saves a value as a node named `name` saves its inputs.
  virtual SavedTensor save(std::string_view name, const Value& value) = 0;
  virtual Value unpack(std::string_view name, SavedTensor& saved) = 0;
  virtual std::shared_ptr<Node> new_node(std::string_view name) = 0;
  virtual Tensor ones_like(const Tensor& tensor) = 0;  // made on the current stream
  virtual AmbientState& ambient() = 0;
  virtual bool& grad_mode() = 0;
  // The list that gets the names of ops that run; null: none.
  virtual std::vector<std::string>*& op_log() = 0;
  // The node that is saving a tensor now; empty: none.
  virtual std::string_view saving_node() const = 0;
  virtual NodeWatch* node_watch() const = 0;  // null: none
};

class SimAutograd {
 public:
  using Tensor = sim::Tensor;
  using Value = sim::Value;

  // Both must outlive it. Without a state it serves only the offloader.
  explicit SimAutograd(GraphEngine& engine, AutogradState* state = nullptr)
      : engine_(&engine), state_(state) {}
  GraphTaskId graph_task() const { return engine_->graph_task(); }
  NodeId node() const { return engine_->node(); }
  void after_node(std::function<void()> callback) { engine_->after_node(std::move(callback)); }
  void after_task(std::function<void()> callback) { engine_->after_task(std::move(callback)); }
  // Not part of the seam: published schedulers (sim/field) use these. They return the gradients
  // that a node produced (valid in its after_node callbacks), and the name of the node that saves a
  // tensor.
  std::span<const Value> node_results() const { return engine_->node_results(); }
  std::string_view saving_node() const { return state_ ? state_->saving_node() : ""; }
  HookStack<Tensor> hooks() const { return engine_->hooks; }

  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(SimAutograd autograd, HookStack<Tensor> hooks)
        : ReplacedHooks(autograd.engine_->hooks, std::move(hooks)) {}
  };

  class SavedValue {
   public:
    Value unpack() { return state_->unpack("checkpoint", saved_); }

   private:
    friend class SimAutograd;
    SavedValue(AutogradState* state, SavedTensor saved) : state_(state), saved_(std::move(saved)) {}
    AutogradState* state_;
    SavedTensor saved_;
  };
  SavedValue save(const Value& value) { return {state_, state_->save("checkpoint", value)}; }

  // A simulation has one thread.
  ThreadId thread() const { return ThreadId{}; }

  bool grad_mode() const { return state_->grad_mode(); }
  class GradModeScope {
   public:
    GradModeScope(SimAutograd autograd, bool on)
        : now_(autograd.state_->grad_mode()), before_(std::exchange(now_, on)) {}
    GradModeScope(const GradModeScope&) = delete;
    GradModeScope& operator=(const GradModeScope&) = delete;
    ~GradModeScope() { now_ = before_; }

   private:
    bool& now_;
    const bool before_;
  };

  struct Ambient {
    AmbientState state;
    bool random = false;  // true: it includes the generator's state
  };
  Ambient ambient(std::span<const Value>, bool random) const { return {state_->ambient(), random}; }
  void check(const Ambient&) const {}
  class AmbientScope {
   public:
    AmbientScope(SimAutograd autograd, const Ambient& ambient)
        : now_(autograd.state_->ambient()), before_(now_), forked_(ambient.random) {
      now_.ambient = ambient.state.ambient;
      if (forked_) now_.random = ambient.state.random;
    }
    AmbientScope(const AmbientScope&) = delete;
    AmbientScope& operator=(const AmbientScope&) = delete;
    ~AmbientScope() {
      now_.ambient = before_.ambient;
      if (forked_) now_.random = before_.random;
    }

   private:
    AmbientState& now_;
    const AmbientState before_;
    const bool forked_;
  };

  class OpLog {
   public:
    explicit OpLog(SimAutograd autograd)
        : log_(autograd.state_->op_log()), outer_(std::exchange(log_, &names_)) {}
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog() {
      log_ = outer_;
      if (outer_) outer_->insert(outer_->end(), names_.begin(), names_.end());
    }
    std::vector<std::string> names() const { return names_; }

   private:
    std::vector<std::string>*& log_;
    std::vector<std::string>* outer_;
    std::vector<std::string> names_;
  };

  bool requires_grad(const Value& value) const { return static_cast<bool>(value.edge); }
  Value detach(const Value& value);
  void backward(std::span<const Value> roots, std::span<const Value> gradients,
                bool retain_graph = false);
  Value gradient(const Value& leaf) const {
    return leaf.edge && leaf.edge.node->total ? *leaf.edge.node->total : Value{};
  }
  bool checkpoint_valid() const { return engine_->all_accumulate(); }
  std::vector<Value> function(std::span<const Value> inputs, std::vector<Value> outputs,
                              HostBackward backward, AbsentGradient absent);

  // Implements the PipelineAutograd concept. A value may be an edge without a tensor: captures keep
  // edges in slots of their own.
  bool exists(const Value& value) const { return value.tensor != nullptr; }
  Tensor tensor(const Value& value) const { return value.tensor; }
  Value leaf(const Tensor& tensor, bool requires_grad);
  bool differentiable(const Value& value) const;
  Value phony(const Value&) const { return {}; }
  std::vector<Value> node(std::span<const Value> inputs, std::vector<Value> outputs,
                          std::function<std::vector<Value>(std::vector<Value>)> backward);

 private:
  GraphEngine* engine_;
  AutogradState* state_;
};

static_assert(PipelineAutograd<SimAutograd>);

}  // namespace ferry::sim
