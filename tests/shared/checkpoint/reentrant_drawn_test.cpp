// Scripts for one region of the reentrant variant: what its function finds in forward and when it
// runs again, what goes into the backward inside its own, what comes out of that, and which
// backwards are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/checkpointer.h"
#include "shared/seam/checkpoint_context.h"
#include "shared/seam/error.h"
#include "sim/choices/draws.h"
#include "tests/shared/checkpoint/hand_world.h"
#include "tests/support/shown_rules.h"

namespace ferry::test {

// A value by its number. A leaf's is that of what it was made of, and more.
struct RegionValue {
  int number = 0;  // 0: none
  bool grad = false;
  bool operator==(const RegionValue&) const = default;
};

}  // namespace ferry::test

template <>
struct ferry::Exceptions<ferry::test::RegionValue> : ferry::Exceptions<void> {};

namespace ferry::test {
namespace {

using choices::Draws;

using RegionValues = std::vector<RegionValue>;
constexpr int kLeafNumber = 1000;
constexpr int kGradientNumber = 1'000'000;

// What autograd is asked for.
struct RegionState {
  bool accumulates = true;  // every task around
  int ambient = 0;          // scopes that are alive
  std::function<RegionValues(RegionValues, RegionValues)> backward;
  RegionValues roots, from;  // of the inner backward
  int backwards = 0;
};

class RegionAutograd : public HandAutograd {
 public:
  using Value = RegionValue;
  RegionAutograd(HandState& state, RegionState& region)
      : HandAutograd(state), hand_(&state), region_(&region) {}

  struct SavedValue {
    Value value;
    Value unpack() const { return value; }
  };
  SavedValue save(const Value& value) const { return {value}; }
  class GradModeScope {
   public:
    GradModeScope(RegionAutograd autograd, bool on)
        : now_(autograd.hand_->grad), before_(std::exchange(now_, on)) {}
    GradModeScope(const GradModeScope&) = delete;
    GradModeScope& operator=(const GradModeScope&) = delete;
    ~GradModeScope() { now_ = before_; }

   private:
    bool& now_;
    const bool before_;
  };
  Ambient ambient(std::span<const Value>, bool random) const {
    return HandAutograd::ambient({}, random);
  }
  class AmbientScope {
   public:
    AmbientScope(RegionAutograd autograd, const Ambient&) : region_(*autograd.region_) {
      ++region_.ambient;
    }
    AmbientScope(const AmbientScope&) = delete;
    AmbientScope& operator=(const AmbientScope&) = delete;
    ~AmbientScope() { --region_.ambient; }

   private:
    RegionState& region_;
  };
  bool requires_grad(const Value& value) const { return value.grad; }
  Value detach(const Value& value) const { return {value.number + kLeafNumber, value.grad}; }
  void backward(std::span<const Value> roots, std::span<const Value> from) const {
    ++region_->backwards;
    region_->roots.assign(roots.begin(), roots.end());
    region_->from.assign(from.begin(), from.end());
  }
  Value gradient(const Value& leaf) const {
    return leaf.grad ? Value{leaf.number + kGradientNumber, false} : Value{};
  }
  bool checkpoint_valid() const { return region_->accumulates; }
  RegionValues function(std::span<const Value>, RegionValues outputs,
                        std::function<RegionValues(RegionValues, RegionValues)> backward,
                        AbsentGradient) const {
    region_->backward = std::move(backward);
    return outputs;
  }

 private:
  HandState* hand_;
  RegionState* region_;
};
static_assert(RecomputingAutograd<RegionAutograd>);

class RegionScript {
 public:
  RegionScript(std::uint64_t number, const Rules& rules, int steps)
      : draws_(number), steps_(steps), checkpointer_(sim::SimDevice(machine_), autograd_, rules) {
    for (int count = draws_.in(1, 4); count > 0; --count) inputs_.push_back(draw_value());
    for (int count = draws_.in(1, 4); count > 0; --count) outputs_.push_back(draw_value());
    planned_ = draws_.one_in(2);
    around_.recomputing = draws_.one_in(4);
    random_ = draws_.one_in(2);
  }

  Objection run() {
    forward();
    for (; steps_ > 0 && !wrong_; --steps_) backward();
    const CheckpointStatistics is = checkpointer_.statistics();
    expect(is.segments == 1 && is.recomputes == recomputes_ && logged_ == recomputes_, "count",
           "a reentrant region's runs are counted, or logged, otherwise");
    expect(!checkpointer_.empty(), "leak", "a reentrant region is gone too early");
    region_.backward = nullptr;
    expect(checkpointer_.empty(), "leak", "a reentrant region is left");
    return wrong_;
  }

 private:
  RegionValue draw_value() { return {++numbers_, !draws_.one_in(3)}; }

  void forward() {
    CheckpointContext context = around_;
    context.run = std::make_shared<CheckpointRun>(1, [this](const Decision&) { ++logged_; });
    if (planned_) {
      SegmentPlan plan;
      plan.segments.emplace_back();
      context.plan =
          std::make_shared<PlannedSegments>(std::make_shared<const SegmentPlan>(std::move(plan)));
    }
    const CheckpointContextGuard<RegionAutograd> guard(autograd_, std::move(context));
    CoreCheckpointOptions options;
    options.preserve_rng_state = random_;
    const RegionValues got = checkpointer_.run_reentrant(
        inputs_, options, [this](const RegionValues& values) { return call(values); });
    expect(got == outputs_ && calls_ == 1, "value", "forward's outputs are others");
    expect(state_.checks == 1 && state_.random == random_, "error",
           "forward's state is looked at otherwise");
    again_ = true;
  }

  // The region's function.
  RegionValues call(const RegionValues& values) {
    ++calls_;
    const CheckpointContext context = checkpoint_context(autograd_.hooks());
    expect(state_.grad == again_, "error", "the grad mode of a region's function");
    expect(context.checkpointing == !again_ &&
               context.recomputing == (again_ || around_.recomputing) && context.skips &&
               (context.plan != nullptr) == planned_,
           "error", "the context of a region's function");
    expect(region_.ambient == (again_ ? 1 : 0), "error",
           "the ambient state of a region's function");
    expect(values == (again_ ? leaves() : inputs_), "value",
           "a region's function is given other inputs");
    return again_ ? again_outputs_ : outputs_;
  }
  RegionValues leaves() const {
    RegionValues leaves = inputs_;
    for (RegionValue& value : leaves) value.number += kLeafNumber;
    return leaves;
  }

  void backward() {
    region_.accumulates = !draws_.one_in(6);
    RegionValues gradients;
    RegionValues roots;
    RegionValues from;
    again_outputs_.clear();
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      gradients.push_back({++numbers_, false});
      again_outputs_.push_back(draw_value());
      if (!again_outputs_.back().grad) continue;
      roots.push_back(again_outputs_.back());
      from.push_back(gradients.back());
    }
    const int deviates = draws_.in(0, 16);
    if (deviates == 0) again_outputs_.push_back(draw_value());
    if (deviates == 1) again_outputs_.pop_back();
    const std::string must = refusal(roots.empty());
    if (region_.accumulates) ++recomputes_;
    const int before = region_.backwards;
    std::string is;
    RegionValues results;
    try {
      results = region_.backward(inputs_, std::move(gradients));
    } catch (const std::exception& error) {
      is = error.what();
    }
    if (is != must) {
      expect(false, "error", "a region's backward says \"" + is + "\", not \"" + must + "\"");
    }
    expect(calls_ == 1 + recomputes_, "count", "a region's function runs too often");
    expect(region_.backwards - before == (must.empty() ? 1 : 0), "count",
           "a region's backward has another number of backwards in it");
    if (!must.empty() || !is.empty()) return;
    expect(region_.roots == roots && region_.from == from, "value",
           "the backward in a region's own begins elsewhere");
    RegionValues expected;
    for (const RegionValue& leaf : leaves()) expected.push_back(autograd_.gradient(leaf));
    expect(results == expected, "value", "a region's gradients are others");
  }
  // Empty: nothing is refused.
  std::string refusal(bool nothing) const {
    if (!region_.accumulates) {
      return "When reentrant, ferry::checkpoint is incompatible with .grad() or passing an "
             "`inputs` parameter to .backward(). To resolve this error, you can either turn "
             "reentrant off, or call .backward() without passing the `inputs` argument.";
    }
    if (again_outputs_.size() != outputs_.size()) {
      return "ferry::checkpoint: the function returned " + std::to_string(outputs_.size()) +
             " tensors in the original forward, and " + std::to_string(again_outputs_.size()) +
             " in recomputation.";
    }
    if (!nothing) return "";
    return "none of output has requires_grad=True, this checkpoint() is not necessary";
  }

  void expect(bool right, const std::string& kind, const std::string& words) {
    if (!right && !wrong_) wrong_ = kind + ": " + words;
  }

  Draws draws_;
  int steps_;
  int numbers_ = 0;
  bool planned_ = false;
  bool random_ = false;
  CheckpointContext around_;
  RegionValues inputs_;
  RegionValues outputs_;
  RegionValues again_outputs_;
  bool again_ = false;  // forward is over
  int calls_ = 0;
  int recomputes_ = 0;
  int logged_ = 0;
  sim::Machine machine_{sim::MachineOptions{}};
  HandState state_;
  RegionState region_;
  RegionAutograd autograd_{state_, region_};
  Checkpointer<sim::SimDevice, RegionAutograd> checkpointer_;
  Objection wrong_;
};

constexpr int kRegionSteps = 6;

Objection try_region(std::uint64_t number, const Rules& rules, int steps = kRegionSteps) {
  return RegionScript(number, rules, steps).run();
}

TEST(ReentrantDrawn, TheCoreDoesAsTheModelSays) {
  const auto core = [](std::uint64_t number) { return try_region(number, {}); };
  EXPECT_EQ(first_objection(core, kScripts), "");
}

TEST(ReentrantDrawn, EachRuleOfItsBackwardShows) {
  expect_shown(
      kShownByRegions,
      [](std::uint64_t number, const Rules& rules) { return try_region(number, rules); }, kScripts);
}

TEST(ReentrantDrawn, AScriptWithoutStepsHasForwardAlone) {
  EXPECT_EQ(try_region(7, {}, 0), std::nullopt);
}

}  // namespace
}  // namespace ferry::test
