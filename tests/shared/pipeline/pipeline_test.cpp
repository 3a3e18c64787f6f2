// What goes wrong in a pipeline's step: the cause reaches the caller, and the next step works.
#include "shared/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shared/pipeline/scheduled_pipeline.h"
#include "sim/gpu/workers.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

using sim::Value;
using test::PipelineRig;
using Values = std::vector<Value>;
using Function = std::function<Values(Values)>;

// Two stages, by autograd and by a schedule.
class PipelineFailures : public testing::TestWithParam<bool> {
 protected:
  void step(const Function& first, const Function& second, std::vector<Values> inputs,
            SkipLayout layout = {}) {
    CorePipelineOptions options;
    const sim::SimWorkers workers(rig_.machine());
    if (GetParam()) {
      Pipeline pipeline(rig_.devices(), rig_.autograd(), workers,
                        std::vector<PipelineStage<sim::SimAutograd>>{{0, first}, {1, second}},
                        std::move(layout), options);
      Values roots;
      for (Values& out : pipeline.forward(std::move(inputs))) roots.push_back(out.front());
      rig_.backward(roots);
      return;
    }
    ScheduledPipeline pipeline(rig_.devices(), rig_.autograd(), workers,
                               std::vector<Function>{first, second}, std::move(layout),
                               ScheduleKind::kOneForwardOneBackward, options);
    pipeline.step(std::move(inputs), [](Values x, std::size_t) { return x.front(); });
  }
  std::string error(const Function& first, const Function& second, std::vector<Values> inputs,
                    SkipLayout layout = {}) {
    try {
      step(first, second, std::move(inputs), std::move(layout));
    } catch (const std::exception& error) {
      return error.what();
    }
    return "none";
  }
  Function plain() {
    return [this](Values x) { return Values{rig_.saving_op(x)}; };
  }
  std::vector<Values> inputs() { return {{rig_.leaf()}, {rig_.leaf()}, {rig_.leaf()}}; }

  PipelineRig rig_{2};
};

TEST_P(PipelineFailures, TheFirstErrorOfAStageReachesTheCaller) {
  const std::int64_t before = rig_.machine().live_storages();
  int calls = 0;
  const Function fails = [&](Values x) {
    if (++calls >= 2) throw std::runtime_error("call " + std::to_string(calls));
    return Values{rig_.saving_op(x)};
  };
  EXPECT_EQ(error(plain(), fails, inputs()), "call 2");
  EXPECT_EQ(rig_.machine().live_storages(), before);
  EXPECT_EQ(rig_.machine().live_events(), 0);
  EXPECT_EQ(rig_.machine().current_stream(), rig_.machine().compute_stream(0));
  EXPECT_EQ(error(plain(), plain(), inputs()), "none");
  EXPECT_TRUE(rig_.hazards().empty()) << rig_.hazards().front();
}

TEST_P(PipelineFailures, AFailureInARecompute) {
  const std::int64_t before = rig_.machine().live_storages();
  int calls = 0;
  const Function fails = [&](Values x) {
    if (++calls == 4) throw std::runtime_error("the first recompute");
    return Values{rig_.saving_op(x)};
  };
  EXPECT_EQ(error(fails, plain(), inputs()), "the first recompute");
  EXPECT_EQ(rig_.machine().live_storages(), before);
  EXPECT_EQ(error(plain(), plain(), inputs()), "none");
}

TEST_P(PipelineFailures, AStashThatIsMissing) {
  const SkipLayout layout({{SkipName("skip"), 0, 1}});
  const auto pops = [this](Values x) {
    x.push_back(current_skip_tracker(rig_.autograd())->load({"skip"}));
    return Values{rig_.op(x)};
  };
  EXPECT_NE(error(plain(), pops, inputs(), layout), "none");
}

TEST_P(PipelineFailures, NoMicroBatchesIsNoStep) {
  int calls = 0;
  const Function counts = [&](Values x) {
    ++calls;
    return x;
  };
  error(counts, counts, {});
  EXPECT_EQ(calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PipelineFailures, testing::Bool(),
                         [](const auto& each) { return each.param ? "autograd" : "scheduled"; });

TEST(Pipeline, OrderNeedsATensorThatCanHaveAGradient) {
  PipelineRig rig(2);
  const Function pass = [](Values x) { return x; };
  Pipeline pipeline(rig.devices(), rig.autograd(), sim::SimWorkers(rig.machine()),
                    std::vector<PipelineStage<sim::SimAutograd>>{{0, pass}, {1, pass}},
                    SkipLayout(), CorePipelineOptions());
  const auto number = [&] { return Values{{rig.fresh(DType::kI64), {}}}; };
  try {
    pipeline.forward({number(), number()});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "No tensor found! A micro-batch needs one that can have a gradient.");
  }
}

TEST(ScheduledPipeline, StagesDivideByDevices) {
  PipelineRig rig(2);
  const Function pass = [](Values x) { return x; };
  EXPECT_THROW(ScheduledPipeline(rig.devices(), rig.autograd(), sim::SimWorkers(rig.machine()),
                                 std::vector<Function>{pass, pass, pass}, SkipLayout(),
                                 ScheduleKind::kInterleaved, CorePipelineOptions()),
               std::invalid_argument);
}

}  // namespace
}  // namespace ferry
