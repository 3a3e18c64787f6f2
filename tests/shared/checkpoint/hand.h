// Autograd by hand for drawn tests: several graph tasks are open at once, a test says which of them
// runs on which thread, and no node runs. Hooks around count what they are given.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "shared/seam/autograd.h"
#include "shared/seam/hooks.h"
#include "sim/gpu/device.h"
#include "tests/shared/checkpoint/recomputing_by_hand.h"

namespace ferry::test {

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

struct HandState : HandThread {
  HookStack<sim::Tensor> hooks;
  HandTasks tasks;
  GraphTaskId task = GraphTaskId::kNone;  // that runs
};

// Says which task runs, as its state has it.
class HandTask {
 public:
  using Tensor = sim::Tensor;

  explicit HandTask(HandState& state) : state_(&state) {}
  GraphTaskId graph_task() const { return state_->task; }
  NodeId node() const { return NodeId::kNone; }
  void after_node(const std::function<void()>&) const {}
  void after_task(std::function<void()> callback) {
    state_->tasks.after(state_->task, std::move(callback));
  }
  HookStack<Tensor> hooks() const { return state_->hooks; }
  struct HooksScope : ReplacedHooks<Tensor> {
    HooksScope(HandTask autograd, HookStack<Tensor> hooks)
        : ReplacedHooks(autograd.state_->hooks, std::move(hooks)) {}
  };

 private:
  HandState* state_;
};

class HandAutograd : public RecomputingByHand<HandTask> {
 public:
  explicit HandAutograd(HandState& state) : RecomputingByHand(HandTask(state), state) {}
};

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

}  // namespace ferry::test
