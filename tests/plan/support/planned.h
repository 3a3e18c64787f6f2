// Random programs that are small enough to run all their plans, and random plans of any program.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "plan/candidates.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "sim/choices/draws.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"

namespace ferry::test {

struct Ran {
  std::int64_t bytes = 0;  // allocated bytes at the peak
  sim::Time ns = 0;
};

struct Subject {
  Program program;
  Hardware hardware;
  plan::Survey surveyed;

  Subject(Program of, const Hardware& on)
      : program(std::move(of)), hardware(on), surveyed(plan::survey(program, hardware)) {}

  // Returns no value if the plan fails.
  std::optional<Ran> run(plan::Mix mix, CoreOptions offload) const {
    plan::settle(mix, surveyed, offload.min_bytes);
    offload.offload = plan::offload_choices(surveyed, mix);
    sim::SimulationOptions options;
    options.offload = std::move(offload);
    options.segments = plan::segment_plan(surveyed, mix);
    options.check = false;
    const sim::Simulation run = sim::simulate(program, hardware, options);
    EXPECT_LE(run.device_peak_bytes, run.device_reserved_bytes);
    if (!run.errors.empty()) return std::nullopt;
    return Ran{run.device_peak_bytes, run.step_ns};
  }
};

// Returns one or two layers, in segments or not.
inline Program few_layers(choices::Draws& draws) {
  SegmentedShape shape;
  shape.elements = draws.in(1, 9) * kMiB / 4;
  shape.inner_elements = draws.in(1, 17) * kMiB / 4;
  shape.weight_elements = 64;
  std::vector<Part> parts;
  for (int layers = draws.one_in(4) ? 2 : 1; layers > 0; --layers) {
    const PartKind kind = draws.one_in(4) ? PartKind::kPlain : PartKind::kSegment;
    parts.push_back({.kind = kind, .layers = 1});
  }
  if (draws.one_in(6)) parts.push_back({.kind = PartKind::kSegment, .layers = 0});
  return segmented(parts, shape);
}

// Returns a program of a few MiB. Operators and link take times of the same order, so that each of
// the three choices is the best one in some programs.
inline Subject small_subject(choices::Draws& draws) {
  Program program = draws.one_in(2) ? few_layers(draws)
                                    : chain({.layers = draws.in(3, 8),
                                             .elements = draws.in(1, 9) * kMiB / 4,
                                             .weight_elements = 64});
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* op = std::get_if<Op>(&statement.action)) {
        op->measured_ns = draws.in(1, 40) * std::int64_t{100'000};
      }
    }
  }
  Hardware hardware = tiny_hardware();
  hardware.memory_bytes_per_us = 1'000'000;
  hardware.link.d2h_alone = hardware.link.d2h_both = draws.in(200, 8'000);
  // The bound does not count copies back. If these take no time, plans come near the bound.
  hardware.link.h2d_alone = hardware.link.h2d_both =
      draws.one_in(2) ? draws.in(200, 16'000) : 1'000'000;
  hardware.launch_ns = draws.in(0, 3) * 50'000;
  return Subject(std::move(program), hardware);
}

inline plan::Mix draw_mix(choices::Draws& draws, const plan::Survey& found) {
  plan::Mix mix = plan::keep_all(found);
  const int keeps = draws.in(1, 5);
  for (PlanChoice& choice : mix.packs) {
    if (!draws.one_in(keeps)) choice = PlanChoice::kOffload;
  }
  for (std::size_t s = 0; s < found.segments.size(); ++s) {
    const plan::SurveyedSegment& here = found.segments[s];
    mix.recompute[s] = draws.one_in(2);
    for (std::size_t i = 0; i < here.inputs.size(); ++i) mix.input_moves[s][i] = draws.one_in(2);
    for (std::size_t p = here.first; mix.recompute[s] && p < here.end; ++p) {
      if (here.whole || !draws.one_in(4)) mix.packs[p] = PlanChoice::kRecompute;
    }
  }
  return mix;
}

}  // namespace ferry::test
