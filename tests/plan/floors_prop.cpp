// No run is below the floor of its plan. The same runs are below floors that are slightly too high,
// so the test can fail.
#include "plan/floors.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "plan/lower_bound.h"
#include "tests/plan/support/planned.h"
#include "tests/plan/support/spanned.h"
#include "verify/programs/random_program.h"

namespace ferry::plan {
namespace {

using test::draw_mix;
using test::kMiB;
using test::small_subject;
using test::Subject;

CoreOptions drawn_options(choices::Draws& draws) {
  CoreOptions options;
  options.window_bytes = options.hold_bytes = draws.in(0, 12) * kMiB;
  options.prefetch_bytes = draws.in(0, 12) * kMiB;
  return options;
}

struct Judged {
  bool ran = false;
  bool below = false;              // the floor for the bytes that it used
  bool below_fewer_bytes = false;  // the floor for slightly fewer bytes
  bool below_slower_link = false;  // the floor of a card that copies half as fast
  bool below_longer = false;       // the floor if each recompute ran from the begin of the step
};

Judged judge(const Subject& subject, const Floors& floors, const Floors& slower,
             choices::Draws& draws) {
  const Survey& found = subject.surveyed;
  const CoreOptions options = drawn_options(draws);
  const Mix mix = draw_mix(draws, found);
  const std::optional<test::Ran> run = subject.run(mix, options);
  if (!run) return {};
  const Candidate candidate = settled(options, mix, found);
  const auto beats = [&](const Floors& of, const Survey& survey, std::int64_t bytes) {
    const Floor floor = of.of(candidate, survey, bytes);
    return run->ns < floor.step_ns || bytes < floor.bytes;
  };
  Survey longer = found;
  for (SurveyedSegment& segment : longer.segments) segment.kernels = 0;
  return {true, beats(floors, found, run->bytes), beats(floors, found, run->bytes - kMiB / 4),
          beats(slower, found, run->bytes), beats(floors, longer, run->bytes)};
}

struct Counts {
  int ran = 0, fewer_bytes = 0, slower_link = 0, longer = 0;
  void add(const Judged& judged) {
    ran += judged.ran;
    fewer_bytes += judged.below_fewer_bytes;
    slower_link += judged.below_slower_link;
    longer += judged.below_longer;
  }
};

// Checks random plans of the program and counts the results.
void count(const Subject& subject, choices::Draws& draws, Counts& counts) {
  KeepTrace trace = trace_keep(subject.program, subject.hardware);
  if (trace.fails) return;
  Hardware half = subject.hardware;
  half.link.d2h_alone = half.link.d2h_both = std::max<std::int64_t>(half.link.d2h_alone / 2, 1);
  const Floors slower(subject.program, half, trace);
  const Floors floors(subject.program, subject.hardware, std::move(trace));
  for (int i = 0; i < 8; ++i) {
    const Judged judged = judge(subject, floors, slower, draws);
    ASSERT_FALSE(judged.below);
    counts.add(judged);
  }
}

TEST(FloorsProp, NoPlanOfASmallProgramIsBelowItsFloor) {
  Counts counts;
  constexpr int kPrograms = 1000;
  for (int number = 0; number < kPrograms; ++number) {
    choices::Draws draws(22, static_cast<std::uint64_t>(number));
    const Subject subject = small_subject(draws);
    ASSERT_NO_FATAL_FAILURE(count(subject, draws, counts)) << "program " << number;
  }
  // The runs are often below a floor that is too high.
  EXPECT_EQ(counts.ran, 8 * kPrograms);
  EXPECT_GT(counts.fewer_bytes, kPrograms);
  EXPECT_GT(counts.slower_link, kPrograms / 10);
  EXPECT_GT(counts.longer, kPrograms / 20);
}

TEST(FloorsProp, NoPlanOfAnyProgramIsBelowItsFloor) {
  Hardware hardware = test::tiny_hardware();
  hardware.memory_bytes_per_us = 10'000;
  Counts counts;
  for (int number = 0; number < 1500; ++number) {
    choices::Draws draws(23, static_cast<std::uint64_t>(number));
    const Subject subject(verify::make_program(verify::draw_recipe(draws, verify::Sizes::kSmall)),
                          hardware);
    ASSERT_NO_FATAL_FAILURE(count(subject, draws, counts)) << "program " << number;
  }
  EXPECT_GT(counts.ran, 1000);
  EXPECT_GT(counts.fewer_bytes, 100);
}

// Plans with spans have no floor, even if they save as many tensors as the plain program.
TEST(FloorsProp, NoPlanWithSpansIsBelowItsFloor) {
  int ran = 0, as_many = 0;
  for (int number = 0; number < 400; ++number) {
    choices::Draws draws(24, static_cast<std::uint64_t>(number));
    const Subject subject = small_subject(draws);
    const Floors floors(subject.program, subject.hardware,
                        trace_keep(subject.program, subject.hardware));
    for (int i = 0; i < 4; ++i) {
      const std::vector<PlanSpan> spans = test::draw_spans(draws, subject.program);
      Survey found = survey(subject.program, subject.hardware, spans);
      Candidate candidate{std::nullopt, keep_all(found)};
      candidate.spanned = std::make_shared<const Spanned>(Spanned{found, spans});
      sim::SimulationOptions options;
      options.segments = segment_plan(found, candidate.mix);
      options.spans = spans;
      const sim::Simulation run = sim::simulate(subject.program, subject.hardware, options);
      const Floor floor = floors.of(candidate, found, run.device_peak_bytes);
      ASSERT_LE(floor.bytes, run.device_peak_bytes) << number;
      ASSERT_LE(floor.step_ns, run.step_ns) << number;
      ++ran;
      as_many += !spans.empty() && found.packs.size() == subject.surveyed.packs.size();
    }
  }
  EXPECT_EQ(ran, 1600);
  EXPECT_GT(as_many, 50);
}

}  // namespace
}  // namespace ferry::plan
