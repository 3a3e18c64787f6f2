// No run is faster than the bound: all plans of some hundred small programs, and some plans of
// programs with all features. The same plans are faster than a bound that is slightly too high, so
// the test can fail.
//
// FERRY_PLANS=1000 tries 1,000 programs instead of these.
#include "plan/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/plan/support/asked.h"
#include "tests/plan/support/every_mix.h"
#include "tests/plan/support/planned.h"
#include "tests/plan/support/spanned.h"
#include "tests/sim/support/graphs.h"
#include "tests/sim/support/tiny.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::draw_mix;
using test::kMiB;
using test::Ran;
using test::small_subject;
using test::Subject;

// Runs every choice for every saved tensor that may move, every segment and the segments' inputs.
std::vector<Ran> every_run(const Subject& subject) {
  std::vector<Ran> runs;
  test::for_each_mix(subject.surveyed, [&](const Mix& mix) {
    for (const CoreOptions& options : test::windows(subject.surveyed)) {
      if (const auto run = subject.run(mix, options)) runs.push_back(*run);
    }
  });
  return runs;
}

// Counts the runs that are faster than the bound for the memory that they need.
std::size_t beaten(const LowerBound& bound, const std::vector<Ran>& runs,
                   std::int64_t bytes_too_few = 0) {
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), [&](const Ran& run) {
    const auto least = bound.step_ns(run.bytes - bytes_too_few);
    return !least || run.ns < *least;
  }));
}

Hardware with_slower_link(Hardware hardware) {
  hardware.link.d2h_alone = hardware.link.d2h_both = hardware.link.d2h_alone / 2;
  return hardware;
}

// Returns a trace in which no activation can be absent while a later kernel reads it.
KeepTrace with_all_held(KeepTrace trace) {
  for (TracedKernel& kernel : trace.kernels) kernel.forward = true;
  return trace;
}

TEST(LowerBoundProp, NoPlanOfASmallProgramBeatsIt) {
  std::size_t runs = 0;
  int beat_slower_link = 0, beat_fewer_bytes = 0, beat_all_held = 0;
  const int programs = test::asked_programs(300);
  for (int number = 0; number < programs; ++number) {
    choices::Draws draws(20, static_cast<std::uint64_t>(number));
    const Subject subject = small_subject(draws);
    ASSERT_EQ(outside_proof(subject.program), "");
    const KeepTrace trace = trace_keep(subject.program, subject.hardware);
    const LowerBound bound(trace, subject.hardware, true);
    const std::vector<Ran> all = every_run(subject);
    ASSERT_EQ(beaten(bound, all), 0u) << "program " << number;
    runs += all.size();
    beat_fewer_bytes += beaten(bound, all, kMiB / 4) > 0;
    beat_slower_link +=
        beaten(LowerBound(trace, with_slower_link(subject.hardware), true), all) > 0;
    beat_all_held += beaten(LowerBound(with_all_held(trace), subject.hardware, true), all) > 0;
  }
  RecordProperty("runs", std::to_string(runs));
  // The plans are often faster than a wrong bound.
  EXPECT_GT(beat_fewer_bytes * 10, programs);
  EXPECT_GT(beat_slower_link * 100, programs);
  EXPECT_GT(beat_all_held * 10, programs);
}

// Runs all sets of spans of the smallest forwards, and random ones of others. The tensors that
// spans do not recompute are all kept, all offloaded, or a random mix.
std::vector<Ran> spanned_runs(const Subject& subject, choices::Draws& draws) {
  std::vector<Ran> runs;
  const auto run = [&](const std::vector<PlanSpan>& spans, const CoreOptions& windows, int way) {
    const auto moves = [&] { return way == 2 ? draws.one_in(2) : way == 1; };
    sim::SimulationOptions options =
        test::spanned(subject.program, subject.hardware, spans, windows, moves);
    options.check = false;
    const sim::Simulation ran = sim::simulate(subject.program, subject.hardware, options);
    if (ran.errors.empty()) runs.push_back({ran.device_peak_bytes, ran.step_ns});
  };
  const auto all_windows = test::windows(subject.surveyed);
  const auto run_all = [&](const std::vector<PlanSpan>& spans) {
    run(spans, all_windows[0], 0);
    for (const CoreOptions& each : all_windows) {
      for (const int way : {1, 2}) run(spans, each, way);
    }
  };
  if (operator_ranges(subject.program).size() <= 4) {
    test::for_each_spans(subject.program, run_all);
  } else {
    for (int i = 0; i < 30; ++i) run_all(test::draw_spans(draws, subject.program));
  }
  return runs;
}

TEST(LowerBoundProp, NoSpansOfASmallProgramBeatIt) {
  int beat_fewer_bytes = 0, beat_slower_link = 0;
  const int programs = test::asked_programs(36);
  for (int number = 0; number < programs; ++number) {
    choices::Draws draws(23, static_cast<std::uint64_t>(number));
    const Subject subject = small_subject(draws);
    const KeepTrace trace = trace_keep(subject.program, subject.hardware);
    const std::vector<Ran> all = spanned_runs(subject, draws);
    ASSERT_FALSE(all.empty());
    ASSERT_EQ(beaten(LowerBound(trace, subject.hardware, true), all), 0u) << "program " << number;
    beat_fewer_bytes += beaten(LowerBound(trace, subject.hardware, true), all, kMiB / 4) > 0;
    beat_slower_link +=
        beaten(LowerBound(trace, with_slower_link(subject.hardware), true), all) > 0;
  }
  EXPECT_GT(beat_fewer_bytes * 10, programs);
  EXPECT_GT(beat_slower_link * 100, programs);
}

// Returns a graph whose operators read one or two earlier results. Nodes save only some results, so
// a recompute may need temporaries that must be recomputed first.
Subject graph_subject(choices::Draws& draws) {
  test::GraphBuilder builder("graph", kMiB / 4);
  std::vector<Slot> made = {builder.input()};
  for (int operators = draws.in(2, 7); operators > 0; --operators) {
    std::vector<Slot> in = {made.back()};
    if (made.size() > 2 && draws.one_in(2)) in.push_back(made[made.size() - 2]);
    const test::Stage stage{.out_bytes = draws.in(1, 9) * kMiB / 2,
                            .more_bytes = draws.one_in(3) ? draws.in(1, 9) * kMiB / 2 : 0,
                            .forward_ns = draws.in(1, 40) * std::int64_t{100'000},
                            .backward_ns = draws.in(1, 40) * std::int64_t{100'000}};
    const bool output = draws.one_in(2);
    made.push_back(builder.op(in, stage, !output || draws.one_in(3), output));
  }
  for (std::size_t i = 1; i + 1 < made.size(); ++i) builder.free(made[i]);
  Hardware card = test::tiny_hardware();
  card.memory_bytes_per_us = 1'000'000;
  return {builder.finish(made.back()), card};
}

TEST(LowerBoundProp, NoSpansOfASmallGraphBeatIt) {
  int beat_fewer_bytes = 0;
  const int programs = test::asked_programs(60);
  for (int number = 0; number < programs; ++number) {
    choices::Draws draws(24, static_cast<std::uint64_t>(number));
    const Subject subject = graph_subject(draws);
    ASSERT_EQ(outside_proof(subject.program), "");
    const LowerBound bound(trace_keep(subject.program, subject.hardware), subject.hardware, true);
    const std::vector<Ran> all = spanned_runs(subject, draws);
    ASSERT_FALSE(all.empty());
    ASSERT_EQ(beaten(bound, all), 0u) << "program " << number;
    beat_fewer_bytes += beaten(bound, all, kMiB / 2) > 0;
  }
  EXPECT_GT(beat_fewer_bytes * 10, programs);
}

// Programs with views, in-place writes, streams, nested graphs, reentrant checkpoints, derivatives
// and micro-batches. Outside the proof the bound is the computing time.
TEST(LowerBoundProp, NoPlanOfAnyProgramBeatsIt) {
  Hardware hardware = test::tiny_hardware();
  hardware.memory_bytes_per_us = 10'000;
  int within = 0;
  for (int number = 0; number < 800; ++number) {
    choices::Draws draws(21, static_cast<std::uint64_t>(number));
    const Subject subject(verify::make_program(verify::draw_recipe(draws, verify::Sizes::kSmall)),
                          hardware);
    const KeepTrace trace = trace_keep(subject.program, hardware);
    if (trace.fails) continue;
    const bool memory = outside_proof(subject.program).empty();
    within += memory;
    const LowerBound bound(trace, hardware, memory);
    std::vector<Ran> runs;
    for (int i = 0; i < 6; ++i) {
      CoreOptions options;
      options.window_bytes = options.hold_bytes = draws.in(0, 3) * kMiB;
      options.prefetch_bytes = draws.in(0, 3) * kMiB;
      if (const auto run = subject.run(draw_mix(draws, subject.surveyed), options)) {
        runs.push_back(*run);
      }
    }
    ASSERT_EQ(beaten(bound, runs), 0u) << "program " << number << (memory ? "" : ", by computing");
  }
  EXPECT_GT(within, 100);
}

}  // namespace
}  // namespace ferry::plan
