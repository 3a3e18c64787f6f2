// Steps of a training: what the later ones need that the first does not, and whose figures are
// told.
#include "sim/run/training/training_loop.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "formats/builder.h"
#include "formats/program_check.h"
#include "formats/program_file.h"
#include "scenarios/hardware.h"
#include "scenarios/programs.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/sizes.h"
#include "tests/sim/support/tiny.h"

namespace ferry::sim {
namespace {

using test::kMiB;

constexpr std::int64_t kWorkspace = 32 * kMiB;

// A card as cuBLAS sees it.
Hardware hopper() {
  Hardware card = test::tiny_hardware();
  card.compute_capability = 90;
  return card;
}

// Forward: a = mm(x, w), of 2 MiB, and 64 MiB that only forward has. Backward: another mm.
Program with_matmuls() {
  Builder b;
  b.program.name = "matmuls";
  const TypeId square = b.type({1024, 1024});
  const TypeId wide = b.type({32768, 1024});
  const TypeId scalar = b.type({1}, DType::kF32);
  const Slot weight = b.global(GlobalKind::kParameter, square);
  const Slot input = b.global(GlobalKind::kInput, square);
  const CodeId loss_body = b.code(CodeKind::kBody, "LossBackward");
  const Slot one = b.argument(loss_body);
  b.result(loss_body, b.op(loss_body, "aten.expand", {one}, square));
  const CodeId mm_body = b.code(CodeKind::kBody, "MmBackward0");
  const Slot gradient = b.argument(mm_body);
  const Slot saved = b.saved(mm_body);
  b.result(mm_body, b.op(mm_body, "aten.mm", {gradient, saved}, square));
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const Slot a = b.op(forward, "aten.mm", {input, weight}, square);
  b.add(forward, MakeNode{"MmBackward0", b.node_id(), {weight}, {a}, {input}, mm_body});
  const Slot large = b.op(forward, "aten.cat", {a}, wide);
  b.add(forward, Free{{large}});
  const Slot loss = b.op(forward, "aten.sum", {a}, scalar);
  b.add(forward, MakeNode{"LossBackward", b.node_id(), {a}, {loss}, {}, loss_body});
  b.result(forward, loss);
  const Slot made = b.slot(0);
  b.add(0, Call{forward, {}, {made}});
  b.add(0, Backward{{made}, {}, {}, false, false});
  check_program(b.program, "matmuls");
  return b.program;
}

Simulation trained(const Program& program, const Hardware& card, std::size_t steps,
                   std::int64_t device_bytes = 0) {
  SimulationOptions options;
  options.training.steps = steps;
  options.device_bytes = device_bytes;
  return simulate(program, card, options);
}

void expect_clean(const Simulation& run) {
  for (const check::Hazard& hazard : run.hazards) ADD_FAILURE() << to_string(hazard);
  for (const ProgramError& error : run.errors) ADD_FAILURE() << error.message;
  EXPECT_FALSE(run.leftovers.any());
}

// Forward and backward launch from threads of their own, so each has its handle of cuBLAS.
TEST(TrainingLoopTest, EachThreadHasAWorkspaceForGood) {
  const Simulation run = trained(with_matmuls(), hopper(), 2);
  expect_clean(run);
  EXPECT_EQ(run.peak_kinds[MemoryKind::kWorkspace], 2 * kWorkspace);
  EXPECT_EQ(trained(with_matmuls(), test::tiny_hardware(), 2).peak_kinds[MemoryKind::kWorkspace],
            0);
}

// In the first step the backward's workspace is put into the 64 MiB that forward has left; the
// second step finds them too small, and takes a segment more.
TEST(TrainingLoopTest, AWorkspaceInACachedBlockCostsALaterStepASegment) {
  const Simulation first = trained(with_matmuls(), hopper(), 1);
  const Simulation second = trained(with_matmuls(), hopper(), 2);
  const Simulation third = trained(with_matmuls(), hopper(), 3);
  expect_clean(third);
  EXPECT_EQ(second.device_reserved_bytes, first.device_reserved_bytes + 64 * kMiB);
  EXPECT_EQ(third.device_reserved_bytes, second.device_reserved_bytes);
  SimulationOptions small;
  small.training.steps = 3;
  small.workspace_bytes = 128 << 10;  // CUBLAS_WORKSPACE_CONFIG=:16:8
  EXPECT_EQ(simulate(with_matmuls(), hopper(), small).device_reserved_bytes,
            trained(with_matmuls(), test::tiny_hardware(), 3).device_reserved_bytes);
}

// In a pool that is a little too small the first two steps give back what is cached, and the third
// finds what it needs.
TEST(TrainingLoopTest, TheLastStepsRetriesAreItsOwn) {
  const Program program = load_program(find_program("unet"));
  const Hardware card = find_hardware("h100");
  const std::int64_t all = trained(program, card, 1).device_reserved_bytes;
  std::vector<std::int64_t> retries;
  std::int64_t before = 0;
  for (const std::size_t steps : {1, 2, 3}) {
    const Simulation run = trained(program, card, steps, all / 100 * 98);
    expect_clean(run);
    EXPECT_EQ(run.num_alloc_retries, before + run.last_alloc_retries);
    before = run.num_alloc_retries;
    retries.push_back(run.last_alloc_retries);
  }
  EXPECT_EQ(retries, (std::vector<std::int64_t>{1, 1, 0}));
}

TEST(TrainingLoopTest, TheFiguresAreTheLastStepsAlone) {
  const Program program = test::chain({.layers = 3});
  const Simulation one = trained(program, test::tiny_hardware(), 1);
  const Simulation many = trained(program, test::tiny_hardware(), 5);
  expect_clean(many);
  EXPECT_EQ(many.step_ns, one.step_ns);
  EXPECT_EQ(many.compute_ns, one.compute_ns);
  EXPECT_EQ(many.device_peak_bytes, one.device_peak_bytes);
  EXPECT_EQ(many.operations, 5 * one.operations);
  EXPECT_NE(many.digest, one.digest);
}

// Copies of the step before are none of this one's.
TEST(TrainingLoopTest, AnOffloadedStepsStatisticsAreItsOwn) {
  SimulationOptions options;
  options.offload.emplace();
  options.offload->window_tensors = 1;
  options.training.steps = 1;
  const Simulation one = simulate(test::chain({.layers = 6}), test::tiny_hardware(), options);
  options.training.steps = 4;
  const Simulation many = simulate(test::chain({.layers = 6}), test::tiny_hardware(), options);
  expect_clean(many);
  EXPECT_GT(one.statistics.offloaded_count, 0);
  EXPECT_EQ(many.statistics.offloaded_count, one.statistics.offloaded_count);
  EXPECT_EQ(many.d2h_bytes, one.d2h_bytes);
  EXPECT_EQ(many.step_ns, one.step_ns);
}

// The gradients of a step are those of the parameters that the step before has made.
TEST(TrainingLoopTest, TheOptimizerChangesWhatTheNextStepComputes) {
  SimulationOptions options;
  options.training = {.optimizer = Optimizer::kSgd, .steps = 2};
  const Program program = test::chain({});
  const Simulation trained = simulate(program, test::tiny_hardware(), options);
  options.training.optimizer = Optimizer::kNoOptimizer;
  const Simulation same = simulate(program, test::tiny_hardware(), options);
  EXPECT_NE(trained.gradients, same.gradients);
  options.offload.emplace();
  options.training.optimizer = Optimizer::kSgd;
  EXPECT_EQ(simulate(program, test::tiny_hardware(), options).gradients, trained.gradients);
}

// Where the optimizer's state no longer fits, nobody's line is to blame.
TEST(TrainingLoopTest, AnOptimizerThatDoesNotFitIsTold) {
  SimulationOptions options;
  options.training = {.optimizer = Optimizer::kAdamW, .steps = 3};
  const Program program = test::chain({.layers = 2, .elements = 16 << 20});  // of 32 MiB
  options.device_bytes = simulate(program, test::tiny_hardware(), {}).device_reserved_bytes;
  const Simulation run = simulate(program, test::tiny_hardware(), options);
  ASSERT_EQ(run.errors.size(), 1u);
  EXPECT_EQ(run.errors[0].line, 0u);
  EXPECT_EQ(run.errors[0].message.rfind("the optimizer's step: CUDA out of memory. ", 0), 0u)
      << run.errors[0].message;
  EXPECT_TRUE(run.hazards.empty());
}

}  // namespace
}  // namespace ferry::sim
