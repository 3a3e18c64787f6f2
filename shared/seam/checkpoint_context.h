// The state of checkpoints on the calling thread: it travels with the hook stack.
//
// Guards change it for a scope. Early stop and debug are read when a checkpoint runs forward; the
// group is read when a saved tensor is unpacked.
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

// Several backwards over disjoint parts of a graph that share one recompute
// (torch.utils.checkpoint's GraphExecGroup): what they recompute lives until the last reference to
// the group dies. Thread-safe.
class ExecGroup {
 public:
  ExecGroup() : id_(next_id()) {}
  ExecGroup(const ExecGroup&) = delete;
  ExecGroup& operator=(const ExecGroup&) = delete;
  ~ExecGroup() {
    for (const auto& [owner, callback] : at_end_) callback();
  }
  std::int64_t id() const { return id_; }
  // Calls `callback`, which must not throw, at the end; forgets it some time after `owner` dies.
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
  std::size_t room_ = 16;  // entries until the next look for dead owners
};

// A plan for the segments of this scope, in calling order. One thread uses it.
class PlannedSegments {
 public:
  explicit PlannedSegments(std::shared_ptr<const SegmentPlan> around)
      : around_(std::move(around)) {}

  // The plan of the next call; none: the call's own options decide.
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

// One forward, as the decision log counts it: its segments are numbered within it. `log` is told of
// every recompute, must not throw, and may be called on any thread.
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

// A segment's number in its run; without a run it has no number and logs nothing.
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
  std::shared_ptr<SkipScope> skips;  // none: the thread's own
  bool checkpointing = false;        // in a checkpointed function that runs for the first time
  bool recomputing = false;          // in one that runs again, or in what it calls
};

template <class Tensor>
CheckpointContext checkpoint_context(const HookStack<Tensor>& stack) {
  return stack.checkpoint ? *stack.checkpoint : CheckpointContext{};
}

// While it lives, checkpoints of this thread use this context.
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

// Backwards in its scope share `group`. Groups do not nest; a group may be entered again.
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
