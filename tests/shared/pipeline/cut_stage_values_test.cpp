// A stage whose graph is cut, on values that are what the seam says and no more: they are copied,
// and what a move leaves behind may be a value still.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "shared/pipeline/cut_stage.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry::test {

// Moving it copies it.
struct CopiedValue : sim::Value {
  CopiedValue() = default;
  CopiedValue(sim::Value value)  // NOLINT(google-explicit-constructor)
      : sim::Value(std::move(value)) {}
  CopiedValue(const CopiedValue&) = default;
  CopiedValue& operator=(const CopiedValue&) = default;
  ~CopiedValue() = default;
};

class CopyingAutograd final : public sim::SimAutograd {
 public:
  using Value = CopiedValue;
  using Values = std::vector<Value>;

  explicit CopyingAutograd(SimAutograd autograd) : SimAutograd(autograd) {}

  struct SavedValue {
    SimAutograd::SavedValue saved;
    Value unpack() { return saved.unpack(); }
  };
  SavedValue save(const Value& value) { return {SimAutograd::save(value)}; }
  Ambient ambient(std::span<const Value>, bool random) const {
    return SimAutograd::ambient({}, random);
  }
  Value detach(const Value& value) { return SimAutograd::detach(value); }
  Value leaf(const Tensor& tensor, bool requires_grad) {
    return SimAutograd::leaf(tensor, requires_grad);
  }
  Value phony(const Value&) const { return {}; }
  Value gradient(const Value& leaf) const { return SimAutograd::gradient(leaf); }
  void backward(std::span<const Value> roots, std::span<const Value> gradients) {
    SimAutograd::backward(plain(roots), plain(gradients));
  }
  using SimAutograd::node;
  Values node(std::span<const Value> inputs, Values outputs, std::function<Values(Values)> run) {
    return copied(SimAutograd::node(
        plain(inputs), plain(outputs),
        [run = std::move(run)](const Plain& gradients) { return plain(run(copied(gradients))); }));
  }
  Values function(std::span<const Value> inputs, Values outputs,
                  std::function<Values(Values, Values)> run, AbsentGradient absent) {
    return copied(SimAutograd::function(
        plain(inputs), plain(outputs),
        [run = std::move(run)](const Plain& saved, const Plain& gradients) {
          return plain(run(copied(saved), copied(gradients)));
        },
        absent));
  }

 private:
  using Plain = std::vector<sim::Value>;
  static Plain plain(std::span<const Value> values) { return {values.begin(), values.end()}; }
  static Values copied(const Plain& values) { return {values.begin(), values.end()}; }
};

static_assert(PipelineAutograd<CopyingAutograd>);

}  // namespace ferry::test

template <>
struct ferry::Exceptions<ferry::test::CopiedValue> : ferry::Exceptions<void> {};

namespace ferry::test {
namespace {

using Values = std::vector<CopiedValue>;

TEST(CutStageValues, AfterItsBackwardAStageKeepsNoNodeOfItsGraph) {
  PipelineRig rig(1);
  std::weak_ptr<sim::Node> inside;
  CutStage<CopyingAutograd> stage(CopyingAutograd(rig.autograd()),
                                  [&](const Values& in) {
                                    const sim::Value made = rig.op({in[0]});
                                    inside = made.edge.node;
                                    return Values{made};
                                  },
                                  std::make_shared<const SkipLayout>(), {{rig.leaf()}, {}});
  stage.forward();
  EXPECT_FALSE(inside.expired());
  stage.backward({{sim::Value{rig.fresh(), {}}}, {}});
  EXPECT_TRUE(inside.expired());
  EXPECT_TRUE(stage.gradients().values.front().tensor);
}

}  // namespace
}  // namespace ferry::test
