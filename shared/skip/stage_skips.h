// The skip tracker of one stage of a pipeline, while the stage runs one micro-batch.
//
// A tensor that is stashed and popped in the same stage keeps its graph. A tensor that crosses
// stages goes through a portal. A stage that may be recomputed owns what it popped; its recompute
// uses a tracker with `again` set.
//
// Source: torch/distributed/pipeline/sync/skip/tracker.py, SkipTrackerThroughPotals.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shared/skip/layout.h"
#include "shared/skip/portal.h"
#include "shared/skip/skip_rules.h"
#include "shared/skip/tracker.h"

namespace ferry {

// The portals of one micro-batch, by route.
template <PipelineDevice D, PipelineAutograd A>
using Portals = std::map<std::size_t, std::shared_ptr<Portal<D, A>>>;

// The tensors that a stage popped through portals, by route.
template <PipelineDevice D>
using PoppedTensors = std::map<std::size_t, std::optional<typename D::Tensor>>;

template <PipelineDevice D, PipelineAutograd A>
class StageSkips final : public SkipTracker<typename A::Value> {
 public:
  using Value = typename A::Value;
  using Values = std::vector<Value>;

  struct Of {
    A autograd;
    std::shared_ptr<const SkipLayout> layout;
    std::shared_ptr<Portals<D, A>> portals;
    std::size_t stage = 0;
    // Set if the stage may be recomputed.
    std::shared_ptr<PoppedTensors<D>> popped;
    SkipRules rules;
  };
  StageSkips(Of of, bool again) : of_(std::move(of)), again_(again) {}

  // Call it before the stage, with the inputs of the stage. It makes the gradients of popped
  // tensors come back before those of the inputs.
  void open(Values& values) {
    if (!of_.layout->into(of_.stage).empty()) {
      const Value phony = fork(of_.autograd, lane(of_.autograd, values));
      if (of_.rules.orders_pops()) popping_ = phony;
      if (passes()) add_joining(phony);
    } else if (Value* const value = passes() ? find_lane(of_.autograd, values) : nullptr) {
      add_joining(fork(of_.autograd, *value));
    }
  }
  // Call it after the stage, with the outputs of the stage. Stashed tensors leave now, with their
  // final values, since the stage may have applied an activation in place. Their gradients join the
  // backward of the stage. So do the edges of skip tensors that go past the stage, because its
  // function may cut the graph between its values.
  void close(Values& values) {
    for (auto& [route, value] : std::exchange(stashed_, {})) {
      add_joining(of_.portals->at(route)->blue(value, again_));
    }
    if (joining_.empty() || !of_.rules.joins_stashed()) return;
    Value& value = lane(of_.autograd, values);
    for (const Value& phony : joining_) join(of_.autograd, value, phony);
  }

  void save(const SkipName& name, Value value) override {
    const std::size_t route = of_.layout->find_crossing(name);
    if (route == SkipLayout::kNone) return inside_.save(name, std::move(value));
    stashed_.insert_or_assign(route, std::move(value));
  }
  Value load(const SkipName& name) override {
    const std::size_t route = of_.layout->find_crossing(name);
    if (route == SkipLayout::kNone) return inside_.load(name);
    Portal<D, A>& portal = *of_.portals->at(route);
    const bool owned = of_.popped && of_.rules.owns_popped();
    const auto taken = again_ && owned ? of_.popped->at(route) : portal.take();
    if (!again_ && owned) of_.popped->insert_or_assign(route, taken);
    return taken ? portal.orange(*taken, popping_) : Value();
  }

 private:
  // A recompute does not count: it is one node between its values, whatever is in it.
  bool passes() const { return !again_ && of_.layout->passes(of_.stage); }
  void add_joining(const Value& phony) {
    if (of_.autograd.requires_grad(phony)) joining_.push_back(phony);
  }

  const Of of_;
  const bool again_;
  PlainSkips<Value> inside_;
  Value popping_;                         // a phony
  Values joining_;                        // phonies
  std::map<std::size_t, Value> stashed_;  // by route, until the stage ends
};

}  // namespace ferry
