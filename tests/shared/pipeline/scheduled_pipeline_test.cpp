// A step that goes backward itself: what it refuses, what it returns, and what its stages see and
// keep.
#include "shared/pipeline/scheduled_pipeline.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "sim/gpu/workers.h"
#include "tests/shared/pipeline/asked_autograd.h"
#include "tests/shared/pipeline/stranger_workers.h"

namespace ferry {
namespace {

using sim::Value;
using test::AskedAutograd;
using test::PipelineRig;
using test::ThreadState;
using Values = std::vector<Value>;
using Function = std::function<Values(Values)>;

class ScheduledSteps : public testing::Test {
 protected:
  using Loss = std::function<Value(Values, std::size_t)>;

  // One stage on each of two devices.
  template <class W>
  Values step_by(const W& workers, const std::vector<Function>& stages, CheckpointMode mode,
                 std::vector<Values> inputs, const Loss& loss = first) {
    CorePipelineOptions options;
    options.checkpoint = mode;
    ScheduledPipeline pipeline(rig_.devices(), autograd_, workers, stages, SkipLayout(),
                               ScheduleKind::kGpipe, options);
    return pipeline.step(std::move(inputs), loss);
  }
  Values step(const std::vector<Function>& stages, CheckpointMode mode, std::vector<Values> inputs,
              const Loss& loss = first) {
    return step_by(sim::SimWorkers(rig_.machine()), stages, mode, std::move(inputs), loss);
  }
  static Value first(const Values& out, std::size_t) { return out.front(); }
  Function plain() {
    return [this](Values x) { return Values{rig_.op(x)}; };
  }
  std::vector<Values> inputs() { return {{rig_.leaf()}, {rig_.leaf()}, {rig_.leaf()}}; }

  PipelineRig rig_{2};
  AskedAutograd autograd_{rig_};
};

TEST_F(ScheduledSteps, ThereIsADeviceAndAStage) {
  const auto refusal = [&](std::vector<sim::SimDevice> devices, std::vector<Function> stages) {
    try {
      ScheduledPipeline(std::move(devices), rig_.autograd(), sim::SimWorkers(rig_.machine()),
                        std::move(stages), SkipLayout(), ScheduleKind::kGpipe,
                        CorePipelineOptions());
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string expected = "expected the same number of stages on each device";
  EXPECT_EQ(refusal({}, {plain()}), expected);
  EXPECT_EQ(refusal(rig_.devices(), {}), expected);
  EXPECT_EQ(refusal({}, {}), expected);
  EXPECT_EQ(refusal(rig_.devices(), {plain()}), expected);
  EXPECT_EQ(refusal(rig_.devices(), {plain(), plain()}), "none");
}

TEST_F(ScheduledSteps, TheLossesComeInTheOrderOfTheMicroBatchesAndWithoutTheirGraph) {
  for (const CheckpointMode mode : {CheckpointMode::kNever, CheckpointMode::kExceptLast}) {
    std::vector<sim::Tensor> made(3);
    const Values losses = step({plain(), plain()}, mode, inputs(), [&](Values out, std::size_t i) {
      const Value loss = rig_.op(out);
      if (!made[i]) made[i] = loss.tensor;
      return loss;
    });
    ASSERT_EQ(losses.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(losses[i].tensor, made[i]);
      EXPECT_FALSE(rig_.autograd().requires_grad(losses[i]));
    }
  }
}

TEST_F(ScheduledSteps, TheFirstStageComputesWithTheVeryTensorsThatWereGiven) {
  const std::vector<Values> given = inputs();
  std::vector<sim::Tensor> seen;
  const Function notes = [&](Values x) {
    seen.push_back(x.front().tensor);
    return Values{rig_.op(x)};
  };
  step({notes, plain()}, CheckpointMode::kNever, given);
  ASSERT_EQ(seen.size(), given.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], given[i].front().tensor);
}

// Unless the stage's own graph saved it.
TEST_F(ScheduledSteps, AResultIsFreedWhenTheNextStageHasIt) {
  std::weak_ptr<sim::StorageImpl> result;
  const Function first = [&](Values x) {
    const Value out = rig_.op(x);
    result = out.tensor->storage;
    return Values{out};
  };
  const Function second = [&](Values x) {
    EXPECT_EQ(x.front().tensor->storage->device, 1u);
    EXPECT_TRUE(result.expired());
    return Values{rig_.op(x)};
  };
  step({first, second}, CheckpointMode::kNever, {{rig_.leaf()}});
}

TEST_F(ScheduledSteps, WithoutHooksTheInputsOfAStageThatRunsAgainAreNotSaved) {
  step({plain(), plain()}, CheckpointMode::kAlways, inputs());
  EXPECT_TRUE(autograd_.asked().saves.empty());
}

// In forward, when they run again and in backward.
TEST_F(ScheduledSteps, StagesRunWithTheStateOfTheThreadThatBeganTheStep) {
  struct PassOn final : Hooks<sim::Tensor> {
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor&) override { return nullptr; }
  };
  const HooksGuard<sim::SimAutograd> hooks(rig_.autograd(), std::make_shared<PassOn>());
  const sim::SimAutograd::AmbientScope ambient(rig_.autograd(), {{0, 7}, false});
  const ThreadState callers = test::state_of(rig_.autograd());
  ThreadState no_grad = callers;
  no_grad.grad_mode = false;
  std::vector<ThreadState> seen;
  const auto note = [&] { seen.push_back(test::state_of(rig_.autograd())); };
  const Function notes = [&](Values x) {
    note();
    return rig_.autograd().node(x, {Value{rig_.fresh(), {}}}, [&](Values gradients) {
      note();
      return gradients;
    });
  };
  const test::StrangerWorkers workers(rig_.autograd());
  step_by(workers, {notes, plain()}, CheckpointMode::kNever, {{rig_.leaf()}});
  EXPECT_EQ(seen, (std::vector<ThreadState>{callers, no_grad}));
  seen.clear();
  step_by(workers, {notes, plain()}, CheckpointMode::kAlways, {{rig_.leaf()}});
  EXPECT_EQ(seen, (std::vector<ThreadState>{no_grad, callers, no_grad}));
}

}  // namespace
}  // namespace ferry
