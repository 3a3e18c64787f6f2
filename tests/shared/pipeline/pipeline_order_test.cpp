// The edges that give a pipeline's backward its order, where they live, and what a skip tensor
// costs on its way.
#include <gtest/gtest.h>

#include <string>

#include "shared/pipeline/pipeline.h"
#include "sim/gpu/workers.h"
#include "tests/shared/pipeline/asked_autograd.h"
#include "tests/shared/pipeline/steps_taken.h"

namespace ferry {
namespace {

using sim::Value;
using test::AskedAutograd;
using test::PipelineRig;
using Values = std::vector<Value>;
using Function = std::function<Values(Values)>;
using Stages = std::vector<PipelineStage<AskedAutograd>>;

CorePipelineOptions never() {
  CorePipelineOptions options;
  options.checkpoint = CheckpointMode::kNever;
  return options;
}

class PipelineOrder : public testing::Test {
 protected:
  // One stage on each device.
  std::vector<Values> forward(const std::vector<Function>& functions, std::size_t microbatches,
                              SkipLayout layout = {}) {
    Stages stages;
    for (const Function& function : functions) stages.push_back({stages.size(), function});
    Pipeline pipeline(rig_.devices(), autograd_, sim::SimWorkers(rig_.machine()), std::move(stages),
                      std::move(layout), never());
    std::vector<Values> inputs;
    for (std::size_t i = 0; i < microbatches; ++i) inputs.push_back({rig_.leaf()});
    return pipeline.forward(std::move(inputs));
  }
  Function plain() {
    return [this](Values x) { return Values{rig_.op(x)}; };
  }
  SkipTracker<Value>& skips() { return *current_skip_tracker(rig_.autograd()); }

  test::StepsTaken steps_;
  PipelineRig rig_{3};
  AskedAutograd autograd_{rig_};
};

// Each thread numbers the nodes that it makes: here the loss of the last micro-batch has the lowest
// number of all, and autograd comes to it last.
TEST_F(PipelineOrder, AStageGoesBackwardFromTheLastMicroBatchWhateverTheNumbersOfItsNodes) {
  sim::Machine& machine = rig_.machine();
  std::vector<std::size_t> order;
  std::size_t next = 0;
  const Function second = [&](Values x) {
    const Value more = rig_.leaf();
    for (int i = 0; i < 10; ++i) rig_.op({more});
    return rig_.autograd().node(x, {Value{rig_.fresh(), {}}}, [&order, i = next++](Values given) {
      order.push_back(i);
      return given;
    });
  };
  const std::vector<Values> out = forward({plain(), second}, 3);
  Values losses;
  for (std::size_t i = 0; i < out.size(); ++i) {
    machine.set_host_thread(static_cast<std::uint32_t>(20 + i));
    const Value more = rig_.leaf();
    for (std::size_t k = i; k < 2; ++k) {
      for (int n = 0; n < 100; ++n) rig_.op({more});
    }
    losses.push_back(rig_.op(out[i]));
  }
  machine.set_host_thread(0);
  rig_.backward(losses);
  EXPECT_EQ(order, (std::vector<std::size_t>{2, 1, 0}));
}

// Its gradient comes there: elsewhere autograd would have streams wait for each other.
TEST_F(PipelineOrder, TheEdgeToTheEarlierMicroBatchIsOnThatOnesStreamOfArrival) {
  forward({plain(), plain(), plain()}, 3);
  std::vector<StreamId> forks;
  std::vector<StreamId> joins;
  for (const test::Asked::Node& node : autograd_.asked().nodes) {
    if (node.outputs == 2) forks.push_back(node.stream);
    if (node.inputs == 2) joins.push_back(node.stream);
  }
  sim::Machine& machine = rig_.machine();
  const std::vector<StreamId> expected = {
      machine.transfer_stream(1, 0), machine.transfer_stream(1, 1), machine.transfer_stream(2, 0),
      machine.transfer_stream(2, 1)};
  EXPECT_EQ(forks, expected);
  EXPECT_EQ(joins, expected);
}

// Before the stages between have run.
TEST_F(PipelineOrder, ASkipTensorMayBeReceivedWhenItsStageHasRun) {
  rig_.machine().add_consumer(&steps_);
  const StreamId to = rig_.machine().transfer_stream(2, 0);
  const auto announced = [&] { return steps_.has(Step::kReceiveAfterSent, to); };
  const Function stashes = [&](Values x) {
    skips().save({"skip"}, rig_.op(x));
    EXPECT_FALSE(announced());
    return Values{rig_.op(x)};
  };
  const Function between = [&](Values x) {
    EXPECT_TRUE(announced());
    return Values{rig_.op(x)};
  };
  const Function pops = [&](Values x) {
    x.push_back(skips().load({"skip"}));
    return Values{rig_.op(x)};
  };
  forward({stashes, between, pops}, 1, SkipLayout({{SkipName("skip"), 0, 2}}));
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

// A portal holds a handle on autograd.
TEST_F(PipelineOrder, ASkipTensorThatStaysInItsStageHasNoPortal) {
  const auto handles = [&](SkipLayout layout) {
    std::int64_t found = 0;
    const bool crosses = layout.requires_copy({"skip"});
    const Function stashes = [&](Values x) {
      found = autograd_.handles();
      skips().save({"skip"}, rig_.op(x));
      if (!crosses) skips().load({"skip"});
      return Values{rig_.op(x)};
    };
    const Function pops = [&](Values x) {
      if (crosses) skips().load({"skip"});
      return x;
    };
    forward({stashes, pops}, 2, std::move(layout));
    return found;
  };
  const std::int64_t without = handles({});
  EXPECT_EQ(handles(SkipLayout({{SkipName("skip"), 0, 0}})), without);
  EXPECT_GT(handles(SkipLayout({{SkipName("skip"), 0, 1}})), without);
}

}  // namespace
}  // namespace ferry
