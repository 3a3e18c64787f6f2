// Skip trackers keep a skip tensor from its stash to its pop.
//
// The tracker in force travels with the hook stack (shared/seam/hooks.h). So each thread has its
// own, the end of a scope restores the previous one even after an error, and a recompute on one of
// autograd's threads finds the right one. The plain tracker keeps values with their graph. The
// stages of a pipeline have trackers that hide crossing tensors from autograd (shared/pipeline/).
//
// A checkpointed region that pops would find nothing in its recompute. So its tracker saves popped
// values as the region's inputs are saved, as long as the region may be recomputed. Using one that
// was written in place meanwhile is an error. torchgpipe counts uses instead, which is right only
// if every region is recomputed exactly once and completely. Saving also works for early stop, for
// several backwards and for none.
//
// Source: torch/distributed/pipeline/sync/skip/tracker.py.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "shared/seam/checkpoint_context.h"
#include "shared/seam/error.h"
#include "shared/seam/hooks.h"
#include "shared/skip/namespace.h"
#include "shared/skip/skippable.h"

namespace ferry {

// The base of all trackers. The checkpoint context holds it.
class SkipScope {
 public:
  SkipScope() = default;
  SkipScope(const SkipScope&) = delete;
  SkipScope& operator=(const SkipScope&) = delete;
  virtual ~SkipScope() = default;
};

// The trackers for a checkpointed region and for its recomputes.
struct SkipRegion {
  std::shared_ptr<SkipScope> first;
  std::function<std::shared_ptr<SkipScope>()> again;  // makes a new one for each recompute
};

// An empty value can be stashed too: if none was stashed, none is popped.
template <class Value>
class SkipTracker : public SkipScope {
 public:
  virtual void save(const SkipName& name, Value value) = 0;
  // Removes and returns the value. Throws SkipError if there is none of that name.
  virtual Value load(const SkipName& name) = 0;
};

inline SkipError nothing_stashed(const SkipName& name) {
  return SkipError("'" + name.name + "' is popped, but nothing is stashed under that name");
}

// The plain tracker: it keeps the values themselves.
template <class Value>
class PlainSkips : public SkipTracker<Value> {
 public:
  void save(const SkipName& name, Value value) override {
    values_.insert_or_assign(name, std::move(value));
  }
  Value load(const SkipName& name) override {
    const auto found = values_.find(name);
    if (found == values_.end()) throw make_error<Value>(nothing_stashed(name));
    Value value = std::move(found->second);
    values_.erase(found);
    return value;
  }
  bool has(const SkipName& name) const { return values_.contains(name); }
  bool empty() const { return values_.empty(); }

 private:
  std::map<SkipName, Value> values_;
};

// Saves a value that a region popped. The returned function returns the value, or throws if it was
// written in place since.
template <class Value>
using SaveSkip = std::function<std::function<Value()>(const Value&)>;

namespace skip_detail {

template <class Value>
using Popped = std::map<SkipName, std::function<Value()>>;

// The tracker of a region's first run. It passes stashes and pops to the outer tracker.
template <class Value>
class FirstRun final : public SkipTracker<Value> {
 public:
  FirstRun(std::shared_ptr<SkipTracker<Value>> outer, SaveSkip<Value> save,
           std::shared_ptr<Popped<Value>> popped)
      : outer_(std::move(outer)), save_(std::move(save)), popped_(std::move(popped)) {}
  void save(const SkipName& name, Value value) override {
    inside_.insert(name);
    outer_->save(name, std::move(value));
  }
  Value load(const SkipName& name) override {
    Value value = outer_->load(name);
    if (inside_.erase(name) == 0) popped_->insert_or_assign(name, save_(value));
    return value;
  }

 private:
  const std::shared_ptr<SkipTracker<Value>> outer_;
  const SaveSkip<Value> save_;
  const std::shared_ptr<Popped<Value>> popped_;
  std::set<SkipName> inside_;  // stashed here; a recompute stashes them again
};

// The tracker of a recompute. Each recompute can pop the saved values. Its stashes go nowhere,
// because the layers that pop them have them already.
template <class Value>
class Again final : public SkipTracker<Value> {
 public:
  explicit Again(std::shared_ptr<const Popped<Value>> popped) : popped_(std::move(popped)) {}
  void save(const SkipName& name, Value value) override { inside_.save(name, std::move(value)); }
  Value load(const SkipName& name) override {
    if (inside_.has(name)) return inside_.load(name);
    const auto found = popped_->find(name);
    if (found == popped_->end()) throw make_error<Value>(nothing_stashed(name));
    return found->second();
  }

 private:
  const std::shared_ptr<const Popped<Value>> popped_;
  PlainSkips<Value> inside_;
};

}  // namespace skip_detail

// Returns the trackers of a region that runs under `outer`.
template <class Value>
SkipRegion skip_region(std::shared_ptr<SkipTracker<Value>> outer, SaveSkip<Value> save) {
  const auto popped = std::make_shared<skip_detail::Popped<Value>>();
  return {std::make_shared<skip_detail::FirstRun<Value>>(std::move(outer), std::move(save), popped),
          [popped] { return std::make_shared<skip_detail::Again<Value>>(popped); }};
}

// While it lives, stashes and pops on this thread use the tracker, and so do those in recomputes of
// what runs here.
template <class A>
class SkipTrackerGuard {
 public:
  SkipTrackerGuard(A autograd, std::shared_ptr<SkipTracker<typename A::Value>> tracker) {
    CheckpointContext context = checkpoint_context(autograd.hooks());
    context.skips = std::move(tracker);
    guard_.emplace(std::move(autograd), std::move(context));
  }

 private:
  std::optional<CheckpointContextGuard<A>> guard_;
};

// Returns the tracker of the guard in force, or else one that lives as long as the thread.
template <class A>
std::shared_ptr<SkipTracker<typename A::Value>> current_skip_tracker(const A& autograd) {
  using Value = typename A::Value;
  const auto stack = autograd.hooks();
  if (stack.checkpoint && stack.checkpoint->skips) {
    return std::static_pointer_cast<SkipTracker<Value>>(stack.checkpoint->skips);
  }
  thread_local const auto plain = std::make_shared<PlainSkips<Value>>();
  return plain;
}

// Returns the trackers of a region that begins on the calling thread. No hooks see what it pops.
template <class A>
SkipRegion skip_region_here(const A& autograd) {
  using Value = typename A::Value;
  return skip_region<Value>(current_skip_tracker(autograd), [autograd](const Value& popped) {
    const NoHooksGuard<A> unseen(autograd);
    const auto saved = std::make_shared<typename A::SavedValue>(A(autograd).save(popped));
    return [saved] { return saved->unpack(); };
  });
}

}  // namespace ferry
