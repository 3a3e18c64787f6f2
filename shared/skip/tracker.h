// Trackers keep a skip tensor from its stash to its pop.
//
// The tracker in force travels with the hook stack (shared/seam/hooks.h): so it is the calling
// thread's, it is what it was when its scope ends, however that ends, and a recompute that one of
// autograd's threads runs finds its own. The plain one keeps a value with its graph. A pipeline's
// stages have trackers that hide what crosses stages from autograd (shared/pipeline/).
//
// A checkpointed region that pops would find nothing when it runs again: so it gets a tracker that
// saves what was popped, as its inputs are saved, for as long as the region may run again: what is
// written in place meanwhile, by the region itself say, is refused then. Counting the uses, as
// torchgpipe does, is right only where every region runs exactly once more and whole; what a region
// owns is there for an early stop, for several backwards and for none.
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

// The base of all trackers, as the context carries it.
class SkipScope {
 public:
  SkipScope() = default;
  SkipScope(const SkipScope&) = delete;
  SkipScope& operator=(const SkipScope&) = delete;
  virtual ~SkipScope() = default;
};

// Trackers for a checkpointed region, and for its recomputes.
struct SkipRegion {
  std::shared_ptr<SkipScope> first;
  std::function<std::shared_ptr<SkipScope>()> again;  // a fresh one for each recompute
};

// An empty value is a value, too: if none was stashed, none is popped.
template <class Value>
class SkipTracker : public SkipScope {
 public:
  virtual void save(const SkipName& name, Value value) = 0;
  // Gives the value up. Throws SkipError if there is none of that name.
  virtual Value load(const SkipName& name) = 0;
};

inline SkipError nothing_stashed(const SkipName& name) {
  return SkipError("'" + name.name + "' is popped, but nothing is stashed under that name");
}

// The plain tracker: keeps the values themselves.
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

// Saves a value that a region popped: what it returns gives the value again, or throws if it was
// written in place since.
template <class Value>
using SaveSkip = std::function<std::function<Value()>(const Value&)>;

namespace skip_detail {

template <class Value>
using Popped = std::map<SkipName, std::function<Value()>>;

// The tracker of a region's first run: stashes and pops go to the outer tracker.
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
  std::set<SkipName> inside_;  // stashed here: a recompute stashes them again before a pop
};

// The tracker of a recompute: popped values are there each time, and stashes go nowhere else, since
// whoever pops them has them already.
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

// The trackers of a region that runs under `outer`.
template <class Value>
SkipRegion skip_region(std::shared_ptr<SkipTracker<Value>> outer, SaveSkip<Value> save) {
  const auto popped = std::make_shared<skip_detail::Popped<Value>>();
  return {std::make_shared<skip_detail::FirstRun<Value>>(std::move(outer), std::move(save), popped),
          [popped] { return std::make_shared<skip_detail::Again<Value>>(popped); }};
}

// While it lives, stashes and pops on this thread, and in recomputes of what runs here, use the
// tracker.
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

// The calling thread's tracker: that of the guard in force, else one for the thread's lifetime.
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

// The trackers of a region that begins on the calling thread. No hooks see what it pops.
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
