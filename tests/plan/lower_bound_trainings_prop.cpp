// No training is faster, or needs less memory, than its bound: all plans of small programs, with
// each optimizer. In the optimizer's step of every plan, parameters, gradients and state are in
// memory, and the optimizer's kernels follow the last kernel of backward.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/lower_bound.h"
#include "tests/plan/support/every_mix.h"
#include "tests/plan/support/planned.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using test::kMiB;
using test::Ran;
using test::Subject;

// Returns a program whose parameters need about as much memory as its activations, and whose
// optimizer takes about as long as its kernels.
Subject heavy_subject(choices::Draws& draws) {
  const std::int64_t elements = draws.in(1, 9) * kMiB / 4;
  const std::int64_t weights = draws.in(1, 17) * kMiB / 4;
  Program program;
  if (draws.one_in(2)) {
    test::SegmentedShape shape;
    shape.elements = elements;
    shape.inner_elements = draws.in(1, 9) * kMiB / 4;
    shape.weight_elements = weights;
    program = test::segmented({{.kind = test::PartKind::kSegment, .layers = 1}}, shape);
  } else {
    program =
        test::chain({.layers = draws.in(1, 5), .elements = elements, .weight_elements = weights});
  }
  Hardware hardware = test::tiny_hardware();
  hardware.memory_bytes_per_us = draws.in(2'000, 50'000);
  hardware.link.d2h_alone = hardware.link.d2h_both = draws.in(200, 8'000);
  hardware.link.h2d_alone = hardware.link.h2d_both = draws.in(200, 16'000);
  return Subject(std::move(program), hardware);
}

sim::Training drawn_training(choices::Draws& draws) {
  sim::Training training;
  training.optimizer = static_cast<sim::Optimizer>(draws.in(1, 4));
  training.implementation = static_cast<sim::OptimizerImplementation>(draws.in(0, 2));
  training.set_to_none = !draws.one_in(4);
  training.clip_grad_norm = draws.one_in(4);
  training.grad_scaler = draws.one_in(4);
  training.steps = static_cast<std::size_t>(draws.in(1, 2));
  const bool needs_all = training.clip_grad_norm || training.grad_scaler;
  training.state = static_cast<sim::OptimizerState>(draws.few(6, needs_all ? 2 : 3));
  return training;
}

sim::SimulationOptions as_training(const sim::Training& training) {
  sim::SimulationOptions options;
  options.training = training;
  options.check = false;
  return options;
}

std::vector<Ran> every_training(const Subject& subject, const sim::Training& training) {
  std::vector<Ran> runs;
  test::for_each_mix(subject.surveyed, [&](Mix mix) {
    for (CoreOptions offload : test::windows(subject.surveyed)) {
      settle(mix, subject.surveyed, offload.min_bytes);
      offload.offload = offload_choices(subject.surveyed, mix);
      sim::SimulationOptions options = as_training(training);
      options.segments = segment_plan(subject.surveyed, mix);
      options.offload = std::move(offload);
      const sim::Simulation run = sim::simulate(subject.program, subject.hardware, options);
      if (run.errors.empty()) runs.push_back({run.device_peak_bytes, run.step_ns});
    }
  });
  return runs;
}

// Counts the trainings that need less memory than the bound, or are faster than the bound for the
// memory that they need.
std::size_t beaten(const Subject& subject, const KeepTrace& trace, const std::vector<Ran>& runs) {
  std::size_t count = 0;
  for (const Ran& run : runs) {
    const auto said = certify(subject.program, subject.hardware, trace, run.bytes);
    count += run.bytes < said->least_bytes || !said->step_ns || run.ns < *said->step_ns;
  }
  return count;
}

TEST(LowerBoundTrainingsProp, NoTrainingOfASmallProgramBeatsIt) {
  constexpr int kPrograms = 120;
  std::size_t runs = 0, beat_more_bytes = 0, beat_more_time = 0;
  for (int number = 0; number < kPrograms; ++number) {
    choices::Draws draws(25, static_cast<std::uint64_t>(number));
    const Subject subject = heavy_subject(draws);
    const sim::Training training = drawn_training(draws);
    ASSERT_EQ(outside_proof(subject.program), "");
    const sim::Simulation keeps =
        sim::simulate(subject.program, subject.hardware, as_training(training));
    const KeepTrace trace =
        trace_training(subject.program, subject.hardware, training, keeps.optimizer_ns);
    const std::vector<Ran> all = every_training(subject, training);
    ASSERT_EQ(beaten(subject, trace, all), 0u) << "program " << number;
    runs += all.size();
    // The plans are often below a bound that is slightly too high.
    KeepTrace heavier = trace, longer = trace;
    heavier.optimizer_bytes += kMiB / 4;
    longer.optimizer_ns += longer.optimizer_ns / 4;
    beat_more_bytes += beaten(subject, heavier, all) > 0;
    beat_more_time += beaten(subject, longer, all) > 0;
  }
  RecordProperty("runs", std::to_string(runs));
  EXPECT_GT(beat_more_bytes, kPrograms / 10);
  EXPECT_GT(beat_more_time, kPrograms / 10);
}

}  // namespace
}  // namespace ferry::plan
