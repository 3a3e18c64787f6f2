#include "sim/run/simulation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/program_check.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

constexpr std::int64_t kTensor = 2048;  // bytes of each of the chain's tensors
constexpr std::int64_t kScalar = 512;   // the least that the pool gives

Program chain(int layers = 2) {
  const Program program = test::chain({.layers = layers});
  check_program(program, "chain");
  return program;
}

Simulation run(const Program& program, const SimulationOptions& options = {}) {
  return simulate(program, test::tiny_hardware(), options);
}

// Moves layer 1's saved input and nothing else: each layer saves its input, the loss the last one.
SimulationOptions moving_one() {
  SimulationOptions options;
  options.offload.emplace();
  options.offload->offload = {false, true, false};
  options.offload->prefetch_bytes = 0;
  return options;
}

void expect_same(const Simulation& a, const Simulation& b) {
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.step_ns, b.step_ns);
  EXPECT_EQ(a.device_peak_bytes, b.device_peak_bytes);
  EXPECT_EQ(a.device_reserved_bytes, b.device_reserved_bytes);
  EXPECT_EQ(a.host_peak_bytes, b.host_peak_bytes);
  EXPECT_EQ(a.compute_idle_for_copies_ns, b.compute_idle_for_copies_ns);
  EXPECT_EQ(a.operations, b.operations);
  EXPECT_EQ(a.statistics.offloaded_bytes, b.statistics.offloaded_bytes);
}

void expect_clean(const Simulation& result) {
  for (const check::Hazard& hazard : result.hazards) ADD_FAILURE() << to_string(hazard);
  for (const ProgramError& error : result.errors) ADD_FAILURE() << error.message;
  EXPECT_FALSE(result.leftovers.any());
}

// Forward: y0, y1, loss. Backward: one, its gradient to y1; then to y0 and w1; then to w0. At most
// three globals, y0 (saved), the root and its one, the gradients of y1, y0 and w1 are alive.
TEST(SimulationTest, KeepingEverythingByHand) {
  const Simulation result = run(chain());
  expect_clean(result);
  EXPECT_EQ(result.step_ns, 100 + 100 + 10 + 4 + 10 + 100 + 100 + 100);
  EXPECT_EQ(result.compute_ns, result.step_ns);
  EXPECT_EQ(result.device_peak_bytes, 7 * kTensor + 2 * kScalar);
  EXPECT_EQ(result.device_reserved_bytes, 2 << 20);
  EXPECT_EQ(result.host_peak_bytes, 0);
  EXPECT_EQ(result.overlap_permille(), std::nullopt);
  ASSERT_EQ(result.gradients.size(), 3u);
  EXPECT_EQ(result.gradients[0], 0u);
  EXPECT_NE(result.gradients[1], 0u);
  EXPECT_NE(result.gradients[2], result.gradients[1]);
}

// y0 leaves at 100, when it is there, and takes 2048 ns. It is given up when the next tensor is
// packed, after layer 1's op: computing waits from 200 to 2148. loss, one, grad_loss: to 2172. Then
// it comes back, until 4220, and computing waits for it again; 300 ns of backward follow.
TEST(SimulationTest, MovingOneTensorAtOnceByHand) {
  SimulationOptions options = moving_one();
  options.offload->window_tensors = 1;
  const Simulation result = run(chain(), options);
  expect_clean(result);
  EXPECT_EQ(result.step_ns, 2148 + 10 + 4 + 10 + 2048 + 300);
  EXPECT_EQ(result.d2h_ns, 2048);
  EXPECT_EQ(result.h2d_ns, 2048);
  EXPECT_EQ(result.compute_ns, 524);
  EXPECT_EQ(result.compute_idle_for_copies_ns, 1948 + 2048);
  EXPECT_EQ(result.overlap_permille(), (4096 - 3996) * 1000 / 4096);
  EXPECT_EQ(result.host_peak_bytes, 4096);  // a page
  EXPECT_EQ(result.statistics.offloaded_bytes, kTensor);
  EXPECT_EQ(result.statistics.reloaded_bytes, kTensor);
  EXPECT_EQ(result.device_peak_bytes, 7 * kTensor + 2 * kScalar);  // where y0 is back
}

// A wide window keeps the source: nothing comes back, and only the copy's end makes the step
// longer. What was computed beside it, 428 ns of its 2048, is hidden. (Backward's first gradient is
// 4 bytes of the memory's rate, of which the copy leaves half: 8 ns.)
TEST(SimulationTest, ACopyThatNobodyWaitsForIsHiddenWhileSomethingComputes) {
  const Simulation result = run(chain(), moving_one());
  expect_clean(result);
  EXPECT_EQ(result.step_ns, 100 + 2048);
  EXPECT_EQ(result.overlap_permille(), 428 * 1000 / 2048);
  EXPECT_EQ(result.statistics.stash_hits, 1);
  EXPECT_EQ(result.statistics.vain_count, 1);
}

// Everything is copied out behind the step's computing, and nothing has to come back: all computing
// is over long before the copies are. Overlap was 1.000 beside a slowdown of 2.05.
TEST(SimulationTest, OverlapIsOverTheWholeStep) {
  SimulationOptions options;
  options.offload.emplace();
  options.offload->window_bytes = kUnlimited;
  const Simulation result = run(chain(8), options);
  EXPECT_EQ(result.h2d_bytes, 0);
  EXPECT_GT(result.step_ns, 2 * result.compute_ns);
  // No more of it can be hidden than was computed.
  EXPECT_LE(*result.overlap_permille() * result.d2h_ns / 1000, result.compute_ns);
  EXPECT_EQ(result.compute_idle_for_copies_ns, result.step_ns - result.compute_ns);
}

// A layer's op needs the memory for all of its 100 ns, and a copy takes a tenth of the rate.
TEST(SimulationTest, CopiesSlowKernelsForWhatTheyTakeOfTheMemory) {
  Program program = chain(8);
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      auto* op = std::get_if<Op>(&statement.action);
      if (op && op->name == "layer") op->read_bytes = 1'000'000;
    }
  }
  Hardware card = test::tiny_hardware();
  card.memory_bytes_per_us = 10 * card.link.d2h_alone;
  SimulationOptions options;
  options.offload.emplace();
  options.offload->window_bytes = kUnlimited;  // nothing waits
  const Simulation keep = simulate(program, card, {});
  const Simulation moved = simulate(program, card, options);
  EXPECT_EQ(keep.slowed_by_copies_ns, 0);
  // The input leaves under all eight layers, 111.1 ns each, and is not gone before they are over;
  // nor is it before backward's first gradient, which takes a nanosecond by itself.
  EXPECT_EQ(moved.slowed_by_copies_ns, 8 * (112 - 100) + 1);
  EXPECT_EQ(moved.compute_ns, keep.compute_ns + moved.slowed_by_copies_ns);
}

TEST(SimulationTest, WhateverMovesTheGradientsAreThoseOfKeeping) {
  const Simulation keep = run(chain(12));
  for (const std::int64_t window_tensors : {1, 3, 5}) {
    for (const std::int64_t prefetch_bytes : {std::int64_t{0}, kUnlimited}) {
      SimulationOptions options;
      options.offload.emplace();
      options.offload->window_tensors = window_tensors;
      options.offload->prefetch_bytes = prefetch_bytes;
      const Simulation moved = run(chain(12), options);
      expect_clean(moved);
      EXPECT_EQ(moved.gradients, keep.gradients);
      EXPECT_EQ(moved.statistics.reloaded_count, 12 - window_tensors);  // the input never left
    }
  }
}

TEST(SimulationTest, CheckedAndUncheckedAndAgainItIsTheSame) {
  for (const bool moving : {false, true}) {
    SimulationOptions options;
    if (moving) options.offload = trl_options();
    const Simulation checked = run(chain(8), options);
    expect_same(run(chain(8), options), checked);
    options.check = false;
    const Simulation unchecked = run(chain(8), options);
    expect_same(unchecked, checked);
    EXPECT_TRUE(unchecked.hazards.empty());
    EXPECT_EQ(unchecked.gradients, std::vector<std::uint64_t>(9, 0));
  }
}

TEST(SimulationTest, LookingOnChangesNothing) {
  test::OpLog log;
  SimulationOptions options;
  options.offload = trl_options();
  const Simulation alone = run(chain(8), options);
  options.consumers = {&log};
  expect_same(run(chain(8), options), alone);
  EXPECT_FALSE(log.ops.empty());
}

TEST(SimulationTest, OtherProgramsHaveOtherDigests) {
  EXPECT_NE(run(chain(2)).digest, run(chain(3)).digest);
  Program slower = test::chain({.layers = 2, .op_ns = 101});
  EXPECT_NE(run(slower).digest, run(chain(2)).digest);
}

TEST(SimulationTest, AnOptimizersStateCounts) {
  const auto peak = [](Optimizer optimizer) {
    SimulationOptions options;
    options.training.optimizer = optimizer;
    const Simulation result = run(chain(), options);
    expect_clean(result);
    return result.device_peak_bytes;
  };
  const std::int64_t none = peak(Optimizer::kNoOptimizer);
  EXPECT_EQ(peak(Optimizer::kSgd), none);
  EXPECT_EQ(peak(Optimizer::kMomentum), none + 2 * kTensor);
  EXPECT_EQ(peak(Optimizer::kAdamW), none + 4 * kTensor);
}

TEST(SimulationTest, TiedWeightsAndBuffersHaveNoStateOfTheirOwn) {
  Program program = chain();
  const Global weight = program.globals[1];
  program.globals[2].alias = 1;
  SimulationOptions options;
  options.training.optimizer = Optimizer::kMomentum;
  const std::int64_t tied = run(program, options).device_peak_bytes;
  options.training.optimizer = Optimizer::kNoOptimizer;
  EXPECT_EQ(tied, run(program, options).device_peak_bytes + kTensor);
}

TEST(SimulationTest, WhatDoesNotFitIsAnErrorOfTheRun) {
  Program program = test::chain({.layers = 4, .elements = 4 << 20});  // of 8 MiB
  SimulationOptions options;
  options.device_bytes = std::int64_t{60} << 20;
  const Simulation result = run(program, options);
  ASSERT_FALSE(result.errors.empty());
  EXPECT_EQ(result.errors[0].message.rfind("CUDA out of memory.", 0), 0u);
  EXPECT_TRUE(result.hazards.empty());
  EXPECT_FALSE(result.leftovers.any());
}

TEST(SimulationTest, AFailedStepLeavesNothingAndItsErrorHasALine) {
  Program program = chain(4);
  for (Code& code : program.codes) {
    if (code.name == "LossBackward") code.statements.push_back({Raise{"boom"}, 0});
  }
  program.codes[program.main].statements[1].line = 12;
  SimulationOptions options;
  options.offload = trl_options();
  options.offload->window_tensors = 1;
  const Simulation result = run(program, options);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].line, 12u);
  EXPECT_EQ(result.errors[0].message, "boom");
  EXPECT_TRUE(result.hazards.empty());
  EXPECT_FALSE(result.leftovers.any());
}

TEST(SimulationTest, AnOptionWithoutSenseIsRefused) {
  SimulationOptions options;
  options.offload.emplace();
  options.offload->window_tensors = 0;
  EXPECT_THROW(run(chain(), options), std::invalid_argument);
}

TEST(SimulationTest, AMutatedRunIsCaught) {
  SimulationOptions options;
  options.offload = trl_options();
  options.offload->window_tensors = 1;
  options.mutation = Mutation{Step::kConsume, Bend::kDrop};
  const Simulation result = run(chain(8), options);
  ASSERT_FALSE(result.hazards.empty());
  EXPECT_EQ(result.hazards[0].missing, Step::kConsume) << to_string(result.hazards[0]);
}

TEST(SimulationTest, ShippedProgramsAreSafeUnderBothSetsOfDefaults) {
  const Program gpt2 = load_program(find_program("gpt2"));
  const Hardware hardware = find_hardware("rtx4090");
  const Simulation keep = simulate(gpt2, hardware, {});
  expect_clean(keep);
  for (const CoreOptions& offload : {trl_options(), CoreOptions{}}) {
    SimulationOptions options;
    options.offload = offload;
    const Simulation result = simulate(gpt2, hardware, options);
    expect_clean(result);
    EXPECT_EQ(result.gradients, keep.gradients);
    EXPECT_LT(result.device_peak_bytes, keep.device_peak_bytes);
    EXPECT_GT(result.statistics.offloaded_bytes, std::int64_t{1} << 30);
  }
}

}  // namespace
}  // namespace ferry::sim
