// The bound, compared with values computed by hand.
//
// The program has eight layers. Each is an operator of 100 us that saves its input of 1 MiB; the
// first input is a global. In backward each layer has an operator of 100 us for the gradient of its
// input, and one for that of its weight.
#include "plan/lower_bound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "formats/builder.h"
#include "tests/sim/run/support/parameters.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"

namespace ferry::plan {
namespace {

using test::kMiB;

constexpr sim::Time kUs = 1000;

Program layers() {
  return test::chain({.layers = 8,
                      .elements = kMiB / 2,
                      .weight_elements = 1,
                      .op_ns = 100 * kUs,
                      .loss_ns = 100 * kUs});
}

// The link takes `us_for_mib` us for a MiB.
Hardware card(std::int64_t us_for_mib) {
  Hardware hardware = test::tiny_hardware();
  hardware.memory_bytes_per_us = std::int64_t{1} << 40;
  hardware.link.d2h_alone = hardware.link.d2h_both = kMiB / us_for_mib;
  return hardware;
}

LowerBound bound_of(const Program& program, const Hardware& hardware) {
  return {trace_keep(program, hardware), hardware, outside_proof(program).empty()};
}

TEST(LowerBoundTest, WithEnoughMemoryItIsTheTimeOfComputing) {
  const KeepTrace trace = trace_keep(layers(), card(1000));
  sim::Time sum = 0;
  for (const TracedKernel& kernel : trace.kernels) sum += kernel.ns;
  const LowerBound bound(trace, card(1000), true);
  EXPECT_EQ(bound.step_ns(std::int64_t{1} << 40), sum);
  EXPECT_EQ(bound.compute_ns(), sum);
}

TEST(LowerBoundTest, NoPlanHasLessThanOneKernelNeeds) {
  const LowerBound bound = bound_of(layers(), card(1000));
  EXPECT_EQ(bound.step_ns(bound.least_bytes() - 1), std::nullopt);
  EXPECT_NE(bound.step_ns(bound.least_bytes()), std::nullopt);
  EXPECT_GT(bound.least_bytes(), 3 * kMiB);  // the input, and a layer's two activations
}

// Less than a MiB can be copied before the most expensive kernel. Each further MiB is recomputed in
// 100 us, the time of a layer.
TEST(LowerBoundTest, WhatCannotHaveLeftByTheTurnIsRecomputed) {
  const LowerBound bound = bound_of(layers(), card(1000));
  sim::Time last = bound.compute_ns();
  bool recomputes = false;
  for (std::int64_t budget = 13 * kMiB; budget >= bound.least_bytes(); budget -= kMiB) {
    const sim::Time now = *bound.step_ns(budget);
    EXPECT_GE(now, last);
    EXPECT_LE(now - last, 100 * kUs + 1);
    recomputes |= now - last >= 99 * kUs;
    last = now;
  }
  EXPECT_TRUE(recomputes);
}

// A link that is faster than the operators copies everything in time.
TEST(LowerBoundTest, WhatHasLeftByTheTurnCostsNothing) {
  const LowerBound bound = bound_of(layers(), card(10));
  EXPECT_EQ(bound.step_ns(bound.least_bytes()), bound.compute_ns());
}

// If the link takes longer for a byte than a recompute, the bound adds recomputes only. If it takes
// less, the bound adds a wait for copies.
TEST(LowerBoundTest, OfRecomputeAndLinkTheCheaperIsTaken) {
  const auto over = [](std::int64_t us_for_mib) {
    const LowerBound bound = bound_of(layers(), card(us_for_mib));
    return *bound.step_ns(bound.least_bytes()) - bound.compute_ns();
  };
  EXPECT_NEAR(over(200'000), over(400'000), kUs);  // they differ by the few bytes copied in time
  EXPECT_LT(over(150), over(200'000));
}

TEST(LowerBoundTest, TheHostsLaunchesAreTimeToo) {
  Hardware hardware = card(1000);
  hardware.launch_ns = 1000 * kUs;
  const KeepTrace trace = trace_keep(layers(), hardware);
  const LowerBound bound(trace, hardware, true);
  const auto launches = static_cast<sim::Time>(trace.kernels.size()) - 1;
  EXPECT_EQ(bound.compute_ns(), launches * hardware.launch_ns + trace.kernels.back().ns);
}

TEST(LowerBoundTest, WhatTheProofDoesNotSpeakOfIsNamed) {
  EXPECT_EQ(outside_proof(layers()), "");
  EXPECT_EQ(outside_proof(test::segmented({{.kind = test::PartKind::kReentrant}})),
            "it has reentrant checkpoints");
  Program spans = test::segmented({{.kind = test::PartKind::kReentrant}});
  for (Code& code : spans.codes) {
    for (Statement& statement : code.statements) {
      auto* const call = std::get_if<Call>(&statement.action);
      if (call && is_segment(*call)) call->recompute = Recompute::kReplay;
    }
  }
  EXPECT_EQ(outside_proof(spans), "it has spans of operators");
  Program streams = layers();
  streams.codes[1].statements.push_back({SetStream{1}});
  Program again = layers();
  again.codes[0].statements.push_back({When{true, 1}});
  for (const Program& program : {streams, again}) EXPECT_NE(outside_proof(program), "");
  EXPECT_EQ(bound_of(streams, card(1000)).step_ns(kMiB), std::nullopt);  // globals need more
}

TEST(LowerBoundTest, AStepThatFailsHasNone) {
  Program program = layers();
  auto& statements = program.codes[program.main].statements;
  statements.insert(statements.begin(), Statement{Raise{"boom"}});
  EXPECT_FALSE(certify(program, card(1000), trace_keep(program, card(1000)), kMiB).has_value());
  EXPECT_TRUE(certify(layers(), card(1000), trace_keep(layers(), card(1000)), kMiB).has_value());
}

// An optimizer makes no state for a parameter without a gradient.
TEST(LowerBoundTest, OfATrainingTheStateIsThatOfWhatIsTrained) {
  const Program program = test::of_parameters({{4 * kMiB, DType::kF32}}, 8 * kMiB);
  sim::Training training;
  training.optimizer = sim::Optimizer::kAdamW;
  training.implementation = sim::OptimizerImplementation::kFused;
  for (const std::size_t steps : {1, 2}) {
    training.steps = steps;
    const KeepTrace trace = trace_training(program, test::tiny_hardware(), training, 0);
    const std::int64_t state = 8 * kMiB;
    EXPECT_EQ(trace.optimizer_bytes, (4 + 8 + 4) * kMiB + state);
    EXPECT_EQ(trace.held_bytes, (4 + 8) * kMiB + (steps > 1 ? state : 0));
    const sim::Simulation run = test::trained(program, training, steps);
    EXPECT_GE(run.device_peak_bytes, trace.optimizer_bytes);
    EXPECT_LT(run.device_peak_bytes, trace.optimizer_bytes + kMiB);
  }
}

// foreach AdamW holds the roots of all second moments of a dtype at once.
TEST(LowerBoundTest, OfATrainingTheListsOfForeachAreThere) {
  const Program program =
      test::of_parameters({{4 * kMiB, DType::kF32}, {2 * kMiB, DType::kBF16}}, 8 * kMiB);
  sim::Training training;
  training.optimizer = sim::Optimizer::kAdamW;
  training.steps = 2;
  const KeepTrace trace = trace_training(program, test::tiny_hardware(), training, 0);
  EXPECT_EQ(trace.optimizer_bytes, (6 + 8 + 6 + 12 + 4) * kMiB);
  const sim::Simulation run = test::trained(program, training, 2);
  EXPECT_GE(run.device_peak_bytes, trace.optimizer_bytes);
  training.optimizer = sim::Optimizer::kMomentum;
  const KeepTrace other = trace_training(program, test::tiny_hardware(), training, 0);
  EXPECT_EQ(other.optimizer_bytes, (6 + 8 + 6 + 6) * kMiB);
}

}  // namespace
}  // namespace ferry::plan
