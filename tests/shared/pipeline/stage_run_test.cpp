// One micro-batch at one stage: the thread's state that it runs with, and what it keeps of the skip
// tensors that it popped.
#include "shared/pipeline/stage_run.h"

#include <gtest/gtest.h>

#include "shared/pipeline/pipeline.h"
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
using Stages = std::vector<PipelineStage<AskedAutograd>>;

class StageRunTest : public testing::Test {
 protected:
  struct PassOn final : Hooks<sim::Tensor> {
    std::unique_ptr<Saved<sim::Tensor>> pack(const sim::Tensor&) override { return nullptr; }
  };

  // One micro-batch through one stage on each device.
  template <class W>
  Value forward(const std::vector<Function>& functions, CheckpointMode mode, const W& workers,
                SkipLayout layout = {}) {
    Stages stages;
    for (const Function& function : functions) stages.push_back({stages.size(), function});
    CorePipelineOptions options;
    options.checkpoint = mode;
    Pipeline pipeline(rig_.devices(), autograd_, workers, std::move(stages), std::move(layout),
                      options);
    return pipeline.forward({{rig_.leaf()}}).front().front();
  }
  // Two stages, of which the first one stashes this, and the second one pops it if it is to.
  // Returns what it popped, by run.
  Values popped_by(CheckpointMode mode, const Value& stashed, bool pops) {
    Values popped;
    const Value out =
        forward({[&](Values x) {
                   skips().save({"skip"}, stashed);
                   return Values{rig_.op(x)};
                 },
                 [&](Values x) {
                   if (pops) popped.push_back(skips().load({"skip"}));
                   return Values{rig_.op(x)};
                 }},
                mode, sim::SimWorkers(rig_.machine()), SkipLayout({{SkipName("skip"), 0, 1}}));
    rig_.backward({out});
    return popped;
  }
  SkipTracker<Value>& skips() { return *current_skip_tracker(rig_.autograd()); }

  PipelineRig rig_{2};
  AskedAutograd autograd_{rig_};
};

TEST_F(StageRunTest, AStageRunsWithTheStateOfTheThreadThatBeganTheStep) {
  const HooksGuard<sim::SimAutograd> hooks(rig_.autograd(), std::make_shared<PassOn>());
  const sim::SimAutograd::GradModeScope no_grad(rig_.autograd(), false);
  const sim::SimAutograd::AmbientScope ambient(rig_.autograd(), {{0, 7}, false});
  const ThreadState callers = test::state_of(rig_.autograd());
  std::vector<ThreadState> seen;
  const Function notes = [&](Values x) {
    seen.push_back(test::state_of(rig_.autograd()));
    return Values{rig_.op(x)};
  };
  forward({notes, notes}, CheckpointMode::kNever, test::StrangerWorkers(rig_.autograd()));
  EXPECT_EQ(seen, (std::vector<ThreadState>{callers, callers}));
}

// But for grad mode: only the second run makes a graph.
TEST_F(StageRunTest, ACheckpointedStageRunsWithItTwice) {
  const HooksGuard<sim::SimAutograd> hooks(rig_.autograd(), std::make_shared<PassOn>());
  const sim::SimAutograd::AmbientScope ambient(rig_.autograd(), {{0, 7}, false});
  ThreadState first = test::state_of(rig_.autograd());
  const ThreadState again = first;
  first.grad_mode = false;
  std::vector<ThreadState> seen;
  const Function notes = [&](Values x) {
    seen.push_back(test::state_of(rig_.autograd()));
    return Values{rig_.op(x)};
  };
  const Value out =
      forward({notes}, CheckpointMode::kAlways, test::StrangerWorkers(rig_.autograd()));
  rig_.backward({out});
  EXPECT_EQ(seen, (std::vector<ThreadState>{first, again}));
}

TEST_F(StageRunTest, AStageThatRunsAgainPopsTheSameTensorAgain) {
  const Value stashed = rig_.leaf();
  const Values popped = popped_by(CheckpointMode::kAlways, stashed, true);
  ASSERT_EQ(popped.size(), 2u);
  EXPECT_TRUE(popped[0].tensor);
  EXPECT_EQ(popped[1].tensor->storage, popped[0].tensor->storage);
  EXPECT_FALSE(rig_.autograd().gradient(stashed).tensor);  // it is no part of the loss
}

TEST_F(StageRunTest, AStageThatPoppedNoneDoesSoAgain) {
  const Values popped = popped_by(CheckpointMode::kAlways, Value(), true);
  ASSERT_EQ(popped.size(), 2u);
  for (const Value& value : popped) {
    EXPECT_FALSE(value.tensor);
    EXPECT_FALSE(rig_.autograd().requires_grad(value));
  }
}

TEST_F(StageRunTest, AStageNeedNotPopWhatComesToIt) {
  for (const CheckpointMode mode : {CheckpointMode::kAlways, CheckpointMode::kNever}) {
    EXPECT_TRUE(popped_by(mode, rig_.leaf(), false).empty());
  }
}

// Its gradient goes by the portal: the checkpoint's own graph is none of its business.
TEST_F(StageRunTest, WhatAStagePoppedIsSavedForItsSecondRunWithoutAGraph) {
  popped_by(CheckpointMode::kAlways, rig_.leaf(), true);
  bool found = false;
  for (const std::vector<bool>& inputs : autograd_.asked().functions) {
    if (inputs.size() != 3) continue;
    found = true;
    EXPECT_EQ(inputs, (std::vector<bool>{true, false, true}));  // its input, the skip, the phony
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace ferry
