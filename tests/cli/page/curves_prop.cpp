// Slices of random records beside what each slice has, looked for at length.
#include "cli/page/curves.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/run/simulation.h"
#include "tests/sim/support/in_range.h"
#include "tests/sim/support/tiny.h"

namespace ferry::cli {
namespace {

using sim::Time;
using test::in_range;

sim::RunRecord any_record() {
  sim::SimulationOptions options;
  options.offload.emplace();
  options.offload->min_bytes = 0;
  options.offload->window_tensors = *in_range(1, 5);
  options.training.steps = static_cast<std::size_t>(*in_range(0, 3));
  options.check = false;
  sim::RunRecorder recorder;
  options.recorder = &recorder;
  const test::ChainShape shape{.layers = *in_range(1, 12), .op_ns = *in_range(1, 400)};
  sim::simulate(test::chain(shape), test::tiny_hardware(), options);
  return recorder.record();
}

TEST(CurvesProp, NoMomentOfMemoryIsAboveItsSlices) {
  EXPECT_TRUE(rc::check([] {
    const sim::RunRecord record = any_record();
    const Slices cut = slices(record.step_ns, static_cast<std::size_t>(*in_range(1, 60)));
    const std::vector<MemoryMoment> curve = memory_curve(record, cut);
    RC_ASSERT(curve.size() == cut.count);
    const std::vector<Time> times = sim::memory_times(record);
    std::vector<std::int64_t> most(cut.count, -1);
    std::int64_t bytes = 0;
    std::size_t slice = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const sim::RecordedMemory& change = record.memory[i];
      while (i >= record.found && slice < cut.of(times[i])) {  // what was there when each began
        most[slice] = std::max(most[slice], bytes);
        most[++slice] = bytes;
      }
      if (change.change == sim::MemoryChange::kAllocated) bytes += change.bytes;
      if (change.change == sim::MemoryChange::kFreed) bytes -= change.bytes;
      if (i + 1 >= record.found) most[slice] = std::max(most[slice], bytes);
    }
    while (++slice < cut.count) most[slice] = bytes;
    for (std::size_t i = 0; i < cut.count; ++i) {
      RC_ASSERT(curve[i].kinds.sum() == most[i]);
      RC_ASSERT(cut.of(curve[i].at) == i);
    }
  }));
}

TEST(CurvesProp, EachSliceIsWholeAndTogetherTheyAreTheStep) {
  EXPECT_TRUE(rc::check([] {
    const sim::RunRecord record = any_record();
    const Slices cut = slices(record.step_ns, static_cast<std::size_t>(*in_range(1, 60)));
    RC_ASSERT(cut.begin(0) == 0);
    RC_ASSERT(cut.end(cut.count - 1) == record.step_ns);
    for (const sim::OpKind kind :
         {sim::OpKind::kKernel, sim::OpKind::kDeviceToHost, sim::OpKind::kHostToDevice}) {
      const auto curve = lane_curve(record, kind, sim::idle_parts(record, kind), cut);
      std::size_t begun = 0;
      for (std::size_t i = 0; i < cut.count; ++i) {
        Time all = curve[i].busy_ns;
        for (const Time idle : curve[i].idle_ns) all += idle;
        RC_ASSERT(all == cut.end(i) - cut.begin(i));
        RC_ASSERT((curve[i].busy_ns > 0) == curve[i].longest.has_value());
        begun += curve[i].begun;
      }
      RC_ASSERT(begun == static_cast<std::size_t>(std::count_if(
                             record.work.begin(), record.work.end(),
                             [kind](const auto& work) { return work.kind == kind; })));
    }
  }));
}

}  // namespace
}  // namespace ferry::cli
