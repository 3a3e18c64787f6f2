// Which micro-batches of a pipeline are checkpointed, and the random numbers of those that run
// again.
#include <gtest/gtest.h>

#include <utility>

#include "shared/pipeline/pipeline.h"
#include "sim/gpu/workers.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::SimAutograd;
using sim::Value;
using Values = std::vector<Value>;
using Function = std::function<Values(Values)>;
using Sim = Pipeline<sim::SimDevice, SimAutograd, sim::SimWorkers>;

class PipelineCheckpoints : public testing::Test {
 protected:
  // Two stages.
  Sim pipeline(const Function& function, const CorePipelineOptions& options) {
    return Sim(rig_.devices(), rig_.autograd(), sim::SimWorkers(rig_.machine()),
               {{0, function}, {1, function}}, SkipLayout(), options);
  }
  // Of this many micro-batches.
  Values forward(Sim& pipeline, std::size_t microbatches) {
    std::vector<Values> inputs;
    for (std::size_t i = 0; i < microbatches; ++i) inputs.push_back({rig_.leaf()});
    Values out;
    for (Values& each : pipeline.forward(std::move(inputs))) out.push_back(each.front());
    return out;
  }
  Function plain() {
    return [this](Values x) { return Values{rig_.saving_op(x)}; };
  }
  static CorePipelineOptions mode(CheckpointMode mode) {
    CorePipelineOptions options;
    options.checkpoint = mode;
    return options;
  }
  test::PipelineRig rig_{2};
};

TEST_F(PipelineCheckpoints, TheModeSaysHowManyMicroBatchesOfEachStageRunAgain) {
  for (const auto& [mode, count] : {std::pair{CheckpointMode::kAlways, 3},
                                    {CheckpointMode::kExceptLast, 2},
                                    {CheckpointMode::kNever, 0}}) {
    Sim pipeline = this->pipeline(plain(), this->mode(mode));
    const Values out = forward(pipeline, 3);
    EXPECT_EQ(pipeline.statistics().segments, 2 * count) << name(mode);
    EXPECT_EQ(pipeline.statistics().alive, 2 * count) << name(mode);
    EXPECT_EQ(pipeline.statistics().recomputes, 0) << name(mode);
    rig_.backward(out);
    EXPECT_EQ(pipeline.statistics().recomputes, 2 * count) << name(mode);
  }
}

TEST_F(PipelineCheckpoints, WithoutGradModeNoneIsCheckpointed) {
  Sim pipeline = this->pipeline(plain(), mode(CheckpointMode::kAlways));
  const SimAutograd::GradModeScope no_grad(rig_.autograd(), false);
  for (const Value& out : forward(pipeline, 3)) {
    EXPECT_TRUE(out.tensor);
    EXPECT_FALSE(rig_.autograd().requires_grad(out));
  }
  EXPECT_EQ(pipeline.statistics().segments, 0);
}

TEST_F(PipelineCheckpoints, ARecomputeSeesForwardsRandomNumbersIfTheOptionsSaySo) {
  for (const bool preserve : {true, false}) {
    std::vector<std::uint64_t> seen;
    CorePipelineOptions options = mode(CheckpointMode::kAlways);
    options.preserve_rng_state = preserve;
    Sim pipeline = this->pipeline(
        [&](Values x) {
          seen.push_back(rig_.autograd().ambient({}, true).state.random);
          return Values{rig_.saving_op(x)};
        },
        options);
    Values out;
    {
      const SimAutograd::AmbientScope random(rig_.autograd(), {{5, 0}, true});
      out = forward(pipeline, 1);
    }
    const SimAutograd::AmbientScope random(rig_.autograd(), {{9, 0}, true});
    rig_.backward(out);
    const std::uint64_t again = preserve ? 5 : 9;
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{5, 5, again, again}));
  }
}

}  // namespace
}  // namespace ferry
