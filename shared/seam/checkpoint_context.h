// The state of checkpoints on the calling thread. It travels with the hook stack to the threads of
// autograd's engine.
//
// Guards change it for a scope. `early_stop` and `debug` are read when a checkpoint runs forward;
// the group is read when a saved tensor is unpacked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/seam/checkpoint_options.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"

namespace ferry {

// A group of backwards that share one recompute (torch.utils.checkpoint's GraphExecGroup). They
// must use disjoint parts of the graph. What they recompute lives until the last reference to the
// group dies. Thread-safe.
class ExecGroup {
 public:
  ExecGroup() : id_(next_id()) {}
  ExecGroup(const ExecGroup&) = delete;
  ExecGroup& operator=(const ExecGroup&) = delete;
  ~ExecGroup() {
    for (const auto& [owner, callback] : at_end_) callback();
  }
  std::int64_t id() const { return id_; }
  // Calls `callback` when the group dies. The callback must not throw. After `owner` died, the
  // group may forget the callback.
  void at_end(std::weak_ptr<const void> owner, std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    if (at_end_.size() >= room_) {
      std::erase_if(at_end_, [](const auto& entry) { return entry.first.expired(); });
      room_ = 2 * at_end_.size() + 16;
    }
    at_end_.emplace_back(std::move(owner), std::move(callback));
  }

 private:
  static std::int64_t next_id() {
    static std::atomic<std::int64_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  const std::int64_t id_;
  std::mutex mutex_;
  std::vector<std::pair<std::weak_ptr<const void>, std::function<void()>>> at_end_;
  std::size_t room_ = 16;  // number of entries at which dead owners are removed next
};

// Hands out the plans of the segments in its scope, in calling order. Only one thread may use it.
class PlannedSegments {
 public:
  explicit PlannedSegments(std::shared_ptr<const SegmentPlan> around)
      : around_(std::move(around)) {}

  // Returns the plan of the next call; null if the call's own options decide.
  std::shared_ptr<const SegmentPlan> next() {
    static const SegmentPlan plain = SegmentPlan::closed(false);
    if (next_ < around_->segments.size()) return {around_, &around_->segments[next_++]};
    if (around_->unlisted) return nullptr;
    return {around_, &plain};
  }

 private:
  std::shared_ptr<const SegmentPlan> around_;
  std::size_t next_ = 0;
};

// One forward, for the decision log, which numbers segments within it. `log` is called for every
// recompute, perhaps on any thread, and must not throw.
class CheckpointRun {
 public:
  CheckpointRun(std::uint64_t number, std::function<void(const Decision&)> log)
      : number_(number), log_(std::move(log)) {}
  std::uint64_t begin_segment() { return next_.fetch_add(1, std::memory_order_relaxed); }
  void recomputes(std::uint64_t segment) const {
    if (log_) log_({DecisionKind::kRecompute, number_, segment, 0});
  }

 private:
  const std::uint64_t number_;
  const std::function<void(const Decision&)> log_;
  std::atomic<std::uint64_t> next_ = 0;
};

// The number of a segment in its run. Without a run there is no number, and nothing is logged.
class NumberedSegment {
 public:
  explicit NumberedSegment(std::shared_ptr<CheckpointRun> run)
      : run_(std::move(run)), number_(run_ ? run_->begin_segment() : 0) {}
  void recomputes() const {
    if (run_) run_->recomputes(number_);
  }

 private:
  const std::shared_ptr<CheckpointRun> run_;
  const std::uint64_t number_;
};

class SkipScope;  // shared/skip/tracker.h

struct CheckpointContext {
  std::optional<bool> early_stop;  // overrides the calls' options
  std::optional<bool> debug;
  std::shared_ptr<ExecGroup> group;
  std::shared_ptr<PlannedSegments> plan;
  std::shared_ptr<CheckpointRun> run;
  std::shared_ptr<SkipScope> skips;  // if null: the thread's own tracker
  bool checkpointing = false;        // inside a checkpointed function in its forward
  bool recomputing = false;          // inside a recompute, or in what it calls
};

template <class Tensor>
CheckpointContext checkpoint_context(const HookStack<Tensor>& stack) {
  return stack.checkpoint ? *stack.checkpoint : CheckpointContext{};
}

// While it lives, checkpoints on this thread use this context.
template <class A>
class CheckpointContextGuard {
 public:
  CheckpointContextGuard(A autograd, CheckpointContext context) {
    auto stack = autograd.hooks();
    stack.checkpoint = std::make_shared<const CheckpointContext>(std::move(context));
    scope_.emplace(std::move(autograd), std::move(stack));
  }

 private:
  std::optional<typename A::HooksScope> scope_;
};

// While it lives, backwards share `group`. Groups do not nest. A group can be entered again later.
template <class A>
class ExecGroupGuard {
 public:
  ExecGroupGuard(A autograd, std::shared_ptr<ExecGroup> group) {
    CheckpointContext context = checkpoint_context(autograd.hooks());
    if (context.group) {
      throw make_error<typename A::Tensor>(
          Error("GraphExecGroup contexts cannot be nested. Already inside group " +
                std::to_string(context.group->id())));
    }
    context.group = std::move(group);
    guard_.emplace(std::move(autograd), std::move(context));
  }

 private:
  std::optional<CheckpointContextGuard<A>> guard_;
};

}  // namespace ferry
