// What a recorder has of random trainings, beside what the simulation itself tells of them.
#include "sim/gpu/run_record.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <utility>

#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"

namespace ferry::sim {
namespace {

using test::in_range;

SimulationOptions any_options() {
  SimulationOptions options;
  if (*in_range(0, 4) > 0) {
    options.offload.emplace();
    options.offload->min_bytes = 0;
    options.offload->window_tensors = *in_range(1, 6);
    options.offload->prefetch_bytes = *in_range(0, 8) * 1024;
  }
  options.training.steps = static_cast<std::size_t>(*in_range(0, 4));
  options.training.optimizer = static_cast<Optimizer>(*in_range(0, 5));
  options.check = false;
  return options;
}

Time busy(const RunRecord& record, OpKind kind) {
  Time all = 0;
  for (const RecordedWork& work : record.work) {
    if (work.kind == kind) all += work.end - work.start;
  }
  return all;
}

// In order, none empty, and with the work the whole step; returns how many there are.
std::size_t expect_whole(const RunRecord& record, OpKind kind) {
  Time idle = 0;
  Time at = 0;
  const std::vector<IdlePart> parts = idle_parts(record, kind);
  for (const IdlePart& part : parts) {
    RC_ASSERT(part.start >= at);
    RC_ASSERT(part.end > part.start);
    RC_ASSERT(!part.on || record.work[*part.on].end <= part.end);
    RC_ASSERT((part.why == Idle::kNoMoreWork) <= !part.next);
    if (part.next) RC_ASSERT(record.work[*part.next].start >= part.end);
    idle += part.end - part.start;
    at = part.end;
  }
  RC_ASSERT(idle + busy(record, kind) == record.step_ns);
  return parts.size();
}

TEST(RunRecordProp, TimesAndBytesAreTheSimulations) {
  EXPECT_TRUE(rc::check([] {
    test::Recipe recipe = *test::any_recipe();
    recipe.failure = test::StepFailure::kNone;
    const Program program = test::make_program(recipe);
    Hardware hardware = test::tiny_hardware();
    hardware.launch_ns = *in_range(0, 300);
    SimulationOptions options = any_options();
    RunRecorder recorder;
    options.recorder = &recorder;
    const Simulation run = simulate(program, hardware, options);
    RC_PRE(run.errors.empty());
    const RunRecord& record = recorder.record();
    RC_ASSERT(record.step_ns == run.step_ns);
    RC_ASSERT(busy(record, OpKind::kKernel) == run.compute_ns);
    RC_ASSERT(busy(record, OpKind::kDeviceToHost) == run.d2h_ns);
    RC_ASSERT(busy(record, OpKind::kHostToDevice) == run.h2d_ns);
    const std::size_t gaps = expect_whole(record, OpKind::kKernel);
    expect_whole(record, OpKind::kDeviceToHost);
    expect_whole(record, OpKind::kHostToDevice);
    RC_CLASSIFY(gaps > 1, "computing waits");
    RC_CLASSIFY(run.d2h_bytes > 0, "offloads");

    const RecordedPeak peak = peak_of(record);
    RC_ASSERT(peak.kinds == run.peak_kinds);
    RC_ASSERT(peak.kinds.sum() == run.device_peak_bytes);
    KindBytes of_parts;
    for (const RecordedPeak::Part& part : peak.parts) {
      RC_ASSERT(part.bytes > 0);
      of_parts[part.kind] += part.bytes;
    }
    RC_ASSERT(of_parts == peak.kinds);
    const std::vector<Time> times = memory_times(record);
    for (std::size_t i = 1; i < times.size(); ++i) RC_ASSERT(times[i] >= times[i - 1]);

    options.recorder = nullptr;  // to be recorded changes nothing
    RC_ASSERT(simulate(program, hardware, options).digest == run.digest);
  }));
}

}  // namespace
}  // namespace ferry::sim
