// The skip tracker of one stage of a pipeline whose graph is cut between stages. Skip tensors from
// other stages arrive as leaves, and those that the stage stashes for others are recorded. CutStage
// (cut_stage.h) makes one for each run of the stage. A tensor that arrives can be popped once, and
// stashed() can be called once, after the stage.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "shared/seam/error.h"
#include "shared/skip/layout.h"
#include "shared/skip/tracker.h"

namespace ferry {

template <class Value>
class CutSkips final : public SkipTracker<Value> {
 public:
  // Skip tensors by route.
  using Crossing = std::map<std::size_t, Value>;

  CutSkips(std::shared_ptr<const SkipLayout> layout, Crossing arrived)
      : layout_(std::move(layout)), arrived_(std::move(arrived)) {}

  void save(const SkipName& name, Value value) override {
    const std::size_t route = layout_->find_crossing(name);
    if (route == SkipLayout::kNone) return inside_.save(name, std::move(value));
    stashed_.insert_or_assign(route, std::move(value));
  }
  Value load(const SkipName& name) override {
    const std::size_t route = layout_->find_crossing(name);
    if (route == SkipLayout::kNone) return inside_.load(name);
    const auto found = arrived_.find(route);
    if (found == arrived_.end()) throw make_error<Value>(nothing_stashed(name));
    Value value = std::move(found->second);
    arrived_.erase(found);
    return value;
  }
  Crossing stashed() { return std::move(stashed_); }

 private:
  const std::shared_ptr<const SkipLayout> layout_;
  Crossing arrived_;
  Crossing stashed_;
  PlainSkips<Value> inside_;
};

}  // namespace ferry
