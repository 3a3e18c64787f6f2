// A stage whose graph is cut, alone on one simulated device.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "shared/pipeline/cut_stage.h"
#include "tests/shared/pipeline/asked_autograd.h"

namespace ferry::test {

class CutStageTest : public testing::Test {
 protected:
  using Value = sim::Value;
  using Values = std::vector<Value>;
  using Stage = CutStage<AskedAutograd>;

  Stage stage(Stage::Function function, Values arrived) {
    return Stage(autograd_, std::move(function), std::make_shared<const SkipLayout>(),
                 {std::move(arrived), {}});
  }
  Value constant(DType dtype = DType::kF32) { return {rig_.fresh(dtype), {}}; }
  // Gradients of a stage's results, as the next stage would send them.
  Crossings<Value> gradients(std::size_t count) {
    Crossings<Value> all;
    for (std::size_t i = 0; i < count; ++i) all.values.push_back(constant());
    return all;
  }
  std::vector<bool> require_grad(const Values& values) const {
    std::vector<bool> which;
    for (const Value& value : values) which.push_back(autograd_.requires_grad(value));
    return which;
  }
  std::vector<bool> exist(const Values& values) const {
    std::vector<bool> which;
    for (const Value& value : values) which.push_back(autograd_.exists(value));
    return which;
  }
  Asked& asked() { return autograd_.asked(); }

  PipelineRig rig_{1};
  AskedAutograd autograd_{rig_};
};

}  // namespace ferry::test
