// Autograd by hand: whoever has it says which graph task and thread it is, and no node runs. It
// saves tensors as PyTorch does, by the innermost hooks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/layout.h"
#include "shared/seam/autograd.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "sim/gpu/machine.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// Graph tasks that are not over, by places. A place that is over is another task from then on.
class HandTasks {
 public:
  static constexpr int kPlaces = 2;
  GraphTaskId at(int place) const { return GraphTaskId{ids_[place]}; }
  void after(GraphTaskId task, std::function<void()> callback) {
    for (int place = 0; place < kPlaces; ++place) {
      if (at(place) == task) after_[place].push_back(std::move(callback));
    }
  }
  void end(int place) {
    const std::vector<std::function<void()>> callbacks = std::exchange(after_[place], {});
    for (const auto& callback : callbacks) callback();
    ids_[place] += kPlaces;
  }

 private:
  std::int64_t ids_[kPlaces] = {1, 2};
  std::vector<std::function<void()>> after_[kPlaces];
};

struct HandState {
  HookStack<sim::Tensor> hooks;
  HandTasks tasks;
  GraphTaskId task = GraphTaskId::kNone;
  ThreadId thread{};
  bool grad = true;
  bool random = false;  // whether the random numbers' state was asked for, the last time
  int captured = 0;     // how often it was asked whether the state was captured
  std::vector<std::string>* ops = nullptr;  // the innermost log
};

class HandAutograd {
 public:
  using Tensor = sim::Tensor;
  using Value = sim::Tensor;

  explicit HandAutograd(HandState& state) : state_(&state) {}
  GraphTaskId graph_task() const { return state_->task; }
  NodeId node() const { return NodeId::kNone; }
  void after_node(const std::function<void()>&) const {}
  void after_task(std::function<void()> callback) {
    state_->tasks.after(state_->task, std::move(callback));
  }
  ThreadId thread() const { return state_->thread; }
  HookStack<Tensor> hooks() const { return state_->hooks; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(HandAutograd autograd, HookStack<Tensor> hooks)
        : ReplacedHooks(autograd.state_->hooks, std::move(hooks)) {}
  };

  class SavedValue {
   public:
    Value unpack() { return packed_ ? packed_->unpack() : value_; }

   private:
    friend class HandAutograd;
    SavedValue(Value value, std::unique_ptr<Saved<Tensor>> packed)
        : value_(packed ? nullptr : std::move(value)), packed_(std::move(packed)) {}
    Value value_;
    std::unique_ptr<Saved<Tensor>> packed_;
  };
  SavedValue save(const Value& value) const { return {value, hooks().pack(value)}; }

  bool grad_mode() const { return state_->grad; }
  struct GradModeScope {
    GradModeScope(HandAutograd, bool) {}
  };
  struct Ambient {};
  Ambient ambient(std::span<const Value>, bool random) const {
    state_->random = random;
    return {};
  }
  void check(const Ambient&) const { ++state_->captured; }
  struct AmbientScope {
    AmbientScope(HandAutograd, const Ambient&) {}
  };
  class OpLog {
   public:
    explicit OpLog(HandAutograd autograd)
        : slot_(autograd.state_->ops), outer_(std::exchange(slot_, &names_)) {}
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog() { slot_ = outer_; }
    std::vector<std::string> names() const { return names_; }

   private:
    std::vector<std::string>*& slot_;
    std::vector<std::string>* outer_;
    std::vector<std::string> names_;
  };

  // The reentrant variant's alone.
  bool requires_grad(const Value&) const { return true; }
  Value detach(const Value& value) const { return value; }
  void backward(std::span<const Value>, std::span<const Value>) const {}
  Value gradient(const Value&) const { return {}; }
  bool checkpoint_valid() const { return true; }
  std::vector<Value> function(
      std::span<const Value>, std::vector<Value> outputs,
      const std::function<std::vector<Value>(std::vector<Value>, std::vector<Value>)>&,
      AbsentGradient) const {
    return outputs;
  }

 private:
  HandState* state_;
};

// What an error is that must be another: whether a tensor is refused that was written has an oracle
// of its own.
inline Oracle oracle_of_errors(std::string_view is, std::string_view must) {
  constexpr std::string_view kWritten = "has been modified by an inplace operation";
  const bool says = is.find(kWritten) != std::string_view::npos;
  const bool must_say = must.find(kWritten) != std::string_view::npos;
  return says != must_say ? Oracle::kVersion : Oracle::kError;
}

// Who unpacks a saved tensor.
struct Unpacker {
  int task = -1;   // a place of HandTasks; -1: outside of any
  int group = -1;  // of the backwards that share a recompute; -1: none
  int thread = 0;
  std::uint32_t stream = 0;
};

// Keeps what it is given, or declines it; and counts. It stands around a segment, or a span.
class HandHooks final : public Hooks<sim::Tensor> {
 public:
  explicit HandHooks(bool declines) : declines_(declines) {}
  std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor& tensor) override {
    ++packs;
    if (declines_) return nullptr;
    return std::make_unique<Kept>(*this, tensor);
  }
  std::int64_t packs = 0;
  std::int64_t unpacks = 0;

 private:
  class Kept final : public Saved<sim::Tensor> {
   public:
    Kept(HandHooks& hooks, sim::Tensor tensor) : hooks_(hooks), tensor_(std::move(tensor)) {}
    sim::Tensor unpack() override {
      ++hooks_.unpacks;
      return tensor_;
    }

   private:
    HandHooks& hooks_;
    const sim::Tensor tensor_;
  };
  const bool declines_;
};

// A tensor on a storage of its own, from the current stream's pool.
inline sim::Tensor new_tensor(sim::Machine& machine, std::int64_t bytes) {
  const auto window = std::make_shared<const sim::Window>(
      sim::Window{contiguous_layout(DType::kU8, {bytes}), {0, bytes}});
  return sim::make_tensor(machine.allocate(bytes, machine.current_stream()), {window, 0},
                          machine.new_version());
}

}  // namespace ferry::verify
