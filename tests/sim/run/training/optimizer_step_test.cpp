// What each optimizer keeps and takes for a moment, as measured on PyTorch 2.11: three fp32
// parameters of 4, 8 and 16 MiB, 28 in all, of which "kept / peak over the start of its step".
#include "sim/run/training/optimizer_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/run/simulation.h"
#include "tests/sim/run/support/parameters.h"
#include "tests/sim/support/sizes.h"

namespace ferry::sim {
namespace {

using test::kMiB;
using test::kParameters;
using test::of_parameters;
using test::three;
using test::trained;

constexpr std::int64_t kCounts = 3 * 512;  // a block for each

struct Measured {
  const char* what;
  Training training;
  std::int64_t first_peak;  // over parameters and gradients, in the first step,
  std::int64_t kept;        // what it keeps,
  std::int64_t later_peak;  // and over all that, in the later ones
};

TEST(OptimizerStepTest, MemoryIsThatOfPyTorch) {
  using enum Optimizer;
  using enum OptimizerImplementation;
  const std::vector<Measured> all = {
      {"AdamW, foreach", {kAdamW, kForeach}, 84 * kMiB, 56 * kMiB, 28 * kMiB},
      {"AdamW, fused", {kAdamW, kFused}, 56 * kMiB + kCounts, 56 * kMiB + kCounts, 0},
      {"AdamW, for-loop", {kAdamW, kForLoop}, 96 * kMiB, 56 * kMiB, 40 * kMiB},
      {"SGD with momentum", {kMomentum, kForeach}, 28 * kMiB, 28 * kMiB, 0},
      {"SGD with momentum, fused", {kMomentum, kFused}, 28 * kMiB, 28 * kMiB, 0},
      {"SGD", {kSgd, kForeach}, 0, 0, 0},
  };
  for (const Measured& each : all) {
    SCOPED_TRACE(each.what);
    // The loss's block of 512 bytes, and that of its gradient, are gone by then.
    const std::int64_t start = 2 * kParameters;
    EXPECT_EQ(trained(three(), each.training, 1).device_peak_bytes,
              std::max(start + each.first_peak, start + 1024));
    const Simulation later = trained(three(), each.training, 3);
    EXPECT_EQ(later.device_peak_bytes,
              std::max(start + each.kept + each.later_peak, start + each.kept + 1024));
    EXPECT_EQ(later.peak_kinds[MemoryKind::kOptimizer], each.kept);
  }
}

// PyTorch's variable still has the list of the dtype before while it makes the next one.
TEST(OptimizerStepTest, TheListsOfTwoDtypesAreThereAtOnce) {
  const Program program = of_parameters({{16 * kMiB, DType::kF32}, {16 * kMiB, DType::kBF16}});
  const Simulation run = trained(program, {Optimizer::kAdamW}, 2);
  EXPECT_EQ(run.device_peak_bytes, 2 * 32 * kMiB + 2 * 32 * kMiB + 32 * kMiB);
}

TEST(OptimizerStepTest, AdamWReadsAndWritesParametersOnceMoreThanAdam) {
  const Time adam = trained(three(), {Optimizer::kAdam}, 1).optimizer_ns;
  const Time adamw = trained(three(), {Optimizer::kAdamW}, 1).optimizer_ns;
  EXPECT_EQ(adamw - adam, 2 * kParameters);  // a byte a nanosecond
}

TEST(OptimizerStepTest, AFusedStepTakesTheLeastTime) {
  const auto time = [](OptimizerImplementation implementation) {
    return trained(three(), {Optimizer::kAdamW, implementation}, 2).optimizer_ns;
  };
  EXPECT_LT(time(OptimizerImplementation::kFused), time(OptimizerImplementation::kForeach));
  // The loop divides into a new tensor where foreach divides in place: as many bytes.
  EXPECT_EQ(time(OptimizerImplementation::kForeach), time(OptimizerImplementation::kForLoop));
}

TEST(OptimizerStepTest, ClippingTakesSomeSmallBlocksAndReadsTheGradientsTwice) {
  Training clipped{Optimizer::kSgd};
  const Time plain = trained(three(), clipped, 2).optimizer_ns;
  clipped.clip_grad_norm = true;
  const Simulation run = trained(three(), clipped, 2);
  EXPECT_LE(run.device_peak_bytes, 2 * kParameters + 10 * 512);
  EXPECT_GE(run.optimizer_ns, plain + 3 * kParameters);
  EXPECT_LE(run.optimizer_ns, plain + 3 * kParameters + 1000);
}

// Kept gradients are added to: what backward makes is there beside them for a moment.
TEST(OptimizerStepTest, GradientsThatStayAreUnderTheNextBackward) {
  Training kept{Optimizer::kSgd};
  kept.set_to_none = false;
  const Simulation run = trained(three(), kept, 2);
  EXPECT_EQ(run.device_peak_bytes, 2 * kParameters + kParameters + 1024);
  EXPECT_EQ(trained(three(), {Optimizer::kSgd}, 2).device_peak_bytes, 2 * kParameters + 1024);
}

}  // namespace
}  // namespace ferry::sim
