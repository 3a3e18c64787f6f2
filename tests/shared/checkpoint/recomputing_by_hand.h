// What an autograd by hand has beside tasks and hooks, so that checkpoints and spans can use it.
//
// The one beneath it says which task and node it is. A test says the rest: which thread it is, and
// where ops are logged. No graph is made, so what the reentrant variant asks for does nothing.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/seam/hooks.h"

namespace ferry::test {

// What a test says of the thread that runs, and what was asked of it.
struct HandThread {
  ThreadId id{};
  bool grad = true;
  bool captured = true;                     // false: the ambient state was not, after all
  int checks = 0;                           // how often it was asked whether it was
  bool random = false;                      // whether it was to have the random numbers' state
  std::vector<std::string>* ops = nullptr;  // the innermost log
};

template <class Tasks>
class RecomputingByHand : public Tasks {
 public:
  using typename Tasks::Tensor;
  using Value = Tensor;
  RecomputingByHand(Tasks tasks, HandThread& thread) : Tasks(std::move(tasks)), thread_(&thread) {}

  struct SavedValue {
    Value value;  // none where hooks have packed it
    std::unique_ptr<Saved<Tensor>> packed;
    Value unpack() { return packed ? packed->unpack() : value; }
  };
  // Saves as PyTorch does, by the innermost hooks.
  SavedValue save(const Value& value) const {
    std::unique_ptr<Saved<Tensor>> packed = this->hooks().pack(value);
    if (packed) return {nullptr, std::move(packed)};
    return {value, nullptr};
  }

  ThreadId thread() const { return thread_->id; }
  bool grad_mode() const { return thread_->grad; }
  struct GradModeScope {
    GradModeScope(RecomputingByHand, bool) {}
  };
  struct Ambient {};
  Ambient ambient(std::span<const Value>, bool random) const {
    thread_->random = random;
    return {};
  }
  void check(const Ambient&) const {
    ++thread_->checks;
    if (!thread_->captured) throw std::runtime_error("the device came late");
  }
  struct AmbientScope {
    AmbientScope(RecomputingByHand, const Ambient&) {}
  };

  class OpLog {
   public:
    explicit OpLog(RecomputingByHand autograd)
        : slot_(autograd.thread_->ops), outer_(std::exchange(slot_, &names_)) {}
    OpLog(const OpLog&) = delete;
    OpLog& operator=(const OpLog&) = delete;
    ~OpLog() { slot_ = outer_; }
    std::vector<std::string> names() const { return names_; }

   private:
    std::vector<std::string>*& slot_;
    std::vector<std::string>* outer_;
    std::vector<std::string> names_;
  };

  // The reentrant variant asks for these.
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
  HandThread* thread_;
};

}  // namespace ferry::test
