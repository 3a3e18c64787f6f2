// Why an engine was idle, and where memory was made, in steps that are small enough to know.
#include "sim/gpu/run_record.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <utility>

#include "formats/program_file.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

RunRecord recorded(const Program& program, const Hardware& hardware, SimulationOptions options,
                   Simulation* run = nullptr) {
  RunRecorder recorder;
  options.recorder = &recorder;
  const Simulation result = simulate(program, hardware, options);
  EXPECT_TRUE(result.errors.empty());
  if (run) *run = result;
  return recorder.record();
}

std::map<Idle, Time> by_reason(const RunRecord& record, OpKind kind) {
  std::map<Idle, Time> reasons;
  for (const IdlePart& part : idle_parts(record, kind)) reasons[part.why] += part.end - part.start;
  return reasons;
}

SimulationOptions offloading() {
  SimulationOptions options;
  options.offload.emplace();
  options.offload->min_bytes = 0;
  options.offload->window_tensors = 1;
  options.offload->prefetch_bytes = 4096;
  return options;
}

TEST(RunRecordTest, ComputingThatWaitsForCopiesIsToldAsTheOverlapHasIt) {
  Simulation run;
  const RunRecord record =
      recorded(test::chain({.layers = 6}), test::tiny_hardware(), offloading(), &run);
  std::map<Idle, Time> reasons = by_reason(record, OpKind::kKernel);
  EXPECT_GT(reasons[Idle::kCopyOut], 0);
  EXPECT_GT(reasons[Idle::kCopyIn], 0);
  EXPECT_EQ(reasons[Idle::kCopyOut] + reasons[Idle::kCopyIn] + reasons[Idle::kNoMoreWork],
            run.compute_idle_for_copies_ns);
  for (const IdlePart& part : idle_parts(record, OpKind::kKernel)) {
    if (part.why == Idle::kCopyIn) {
      ASSERT_TRUE(part.on);
      EXPECT_EQ(record.work[*part.on].kind, OpKind::kHostToDevice);
      EXPECT_EQ(record.names[record.work[*part.on].name], "reload");
    }
  }
}

TEST(RunRecordTest, AHostThatLaunchesTooSlowlyIsTheReason) {
  Hardware hardware = test::tiny_hardware();
  hardware.launch_ns = 1'000;  // an operation takes 100
  const RunRecord record = recorded(test::chain({.layers = 6}), hardware, {});
  std::map<Idle, Time> reasons = by_reason(record, OpKind::kKernel);
  EXPECT_GT(reasons[Idle::kLaunch], 10'000);
  EXPECT_EQ(reasons.size(), 1u);
}

TEST(RunRecordTest, OnlyTheLastStepIsTold) {
  SimulationOptions options;
  options.training = {.optimizer = Optimizer::kAdamW, .steps = 3};
  Simulation run;
  const RunRecord record = recorded(test::chain({}), test::tiny_hardware(), options, &run);
  EXPECT_EQ(record.step_ns, run.step_ns);
  EXPECT_EQ(record.work.front().start, 0);
  for (const RecordedWork& work : record.work) {
    EXPECT_GE(work.start, 0);
    EXPECT_LE(work.end, record.step_ns);
    EXPECT_NE(record.names[work.name], "zeros_like");  // the state is made in the first step
  }
}

// A file's lines are its places: what a module's code makes, in forward and in backward, is its.
TEST(RunRecordTest, MemoryIsPutDownToTheLineThatMadeIt) {
  std::istringstream text(to_text(test::chain({.layers = 3})));
  const Program program = read_program(text, "chain");
  SimulationOptions options;
  options.training = {.optimizer = Optimizer::kAdamW, .steps = 3};
  const RunRecord record = recorded(program, test::tiny_hardware(), options);
  std::map<std::pair<std::uint32_t, MemoryKind>, std::int64_t> made;
  for (const RecordedPeak::Part& part : peak_of(record).parts) {
    made[{part.place, part.kind}] += part.bytes;
  }
  for (const Global& global : program.globals) {
    if (global.kind != GlobalKind::kParameter) continue;
    const std::int64_t weight = made[{global.line, MemoryKind::kParameter}];
    EXPECT_GT(weight, 0) << global.name;
    EXPECT_EQ((made[{global.line, MemoryKind::kOptimizer}]), 2 * weight) << global.name;
  }
  for (const RecordedWork& work : record.work) {
    const bool optimizer = record.names[work.name].starts_with("_foreach");
    EXPECT_EQ(work.place == 0, optimizer) << record.names[work.name];
  }
}

}  // namespace
}  // namespace ferry::sim
