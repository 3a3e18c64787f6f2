// Each assertion of schedules and of scheduled steps is seen to fail, by schedules that nobody made
// and by workers that do not do their tasks as they are told.
#include "shared/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "shared/pipeline/scheduled_pipeline.h"
#include "tests/sim/support/pipeline_rig.h"

namespace ferry {
namespace {

TEST(ScheduleInvariants, ActionsAreOfTheScheduleAndOnce) {
  const Schedule stage{1, 1, {{{true, 1, 0}}}};
  EXPECT_DEATH(in_order(stage), "an action's stage is one of the schedule's");
  const Schedule microbatch{1, 1, {{{true, 0, 1}}}};
  EXPECT_DEATH(in_order(microbatch), "an action's micro-batch is one of the step's");
  const Schedule twice{1, 1, {{{true, 0, 0}, {true, 0, 0}}}};
  EXPECT_DEATH(in_order(twice), "a stage takes a micro-batch once in each direction");
  EXPECT_DEATH(alive_max({{false, 0, 0}}), "what goes backward went forward before");
}

TEST(PlaceInvariants, AStageHasADevice) {
  test::PipelineRig rig(1);
  Places<sim::SimDevice> places(rig.devices());
  EXPECT_DEATH(places.of(1, 0), "a stage is on one of the pipeline's devices");
}

// Does the tasks of these numbers alone.
struct WilfulWorkers {
  std::vector<std::size_t> numbers;
  void run(const std::vector<WorkerTask>& tasks) const {
    for (const std::size_t number : numbers) tasks[number].run();
  }
};
static_assert(Workers<WilfulWorkers>);

// A step of one micro-batch through two stages.
void step_by(std::vector<std::size_t> numbers, CheckpointMode mode) {
  using Values = std::vector<sim::Value>;
  test::PipelineRig rig(2);
  CorePipelineOptions options;
  options.checkpoint = mode;
  const std::function<Values(Values)> stage = [&rig](Values x) { return Values{rig.op(x)}; };
  ScheduledPipeline pipeline(rig.devices(), rig.autograd(), WilfulWorkers{std::move(numbers)},
                             {stage, stage}, SkipLayout(), ScheduleKind::kGpipe, options);
  pipeline.step({{rig.leaf()}}, [](Values out, std::size_t) { return out.front(); });
}

TEST(ScheduledPipelineInvariants, AMicroBatchGoesThereAndBackOnce) {
  EXPECT_DEATH(step_by({0, 0}, CheckpointMode::kNever), "a stage takes a micro-batch forward once");
  EXPECT_DEATH(step_by({2}, CheckpointMode::kNever), "a stage takes backward what it took forward");
  EXPECT_DEATH(step_by({2}, CheckpointMode::kAlways), "a stage runs again what it took forward");
  EXPECT_DEATH(step_by({0}, CheckpointMode::kNever), "a step ends with no micro-batch alive");
}

}  // namespace
}  // namespace ferry
