// GradScaler around an optimizer's step: what it adds to the step's memory and time.
#include "sim/run/training/grad_scaler.h"

#include <gtest/gtest.h>

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
using enum Optimizer;
using enum OptimizerImplementation;

constexpr std::int64_t kBlock = 512;  // of a number

Training scaled(Optimizer optimizer, OptimizerImplementation implementation) {
  return {.optimizer = optimizer, .implementation = implementation, .grad_scaler = true};
}

// The scale and its count of steps live on; found_inf and what 1 / scale takes do not.
TEST(GradScalerTest, ItKeepsTwoNumbers) {
  const Simulation plain = trained(three(), {kMomentum}, 3);
  const Simulation run = trained(three(), scaled(kMomentum, kForeach), 3);
  EXPECT_EQ(run.peak_kinds[MemoryKind::kOptimizer],
            plain.peak_kinds[MemoryKind::kOptimizer] + 2 * kBlock);
}

// Two of 1 / scale's three tensors are there at once, beside found_inf: PyTorch 2.11 was measured
// to take under 5 KiB.
TEST(GradScalerTest, ItsTemporariesAreSmall) {
  const Simulation plain = trained(three(), {kSgd}, 3);
  const Simulation run = trained(three(), scaled(kSgd, kForeach), 3);
  EXPECT_GT(run.device_peak_bytes, plain.device_peak_bytes);
  EXPECT_LE(run.device_peak_bytes, plain.device_peak_bytes + 5 * 1024);
}

// Gradients are read and written once more, a byte a nanosecond; the rest is a few numbers.
TEST(GradScalerTest, GradientsAreReadAndWrittenOnceMore) {
  for (const OptimizerImplementation each : {kForeach, kForLoop, kFused}) {
    const Time plain = trained(three(), {kAdamW, each}, 2).optimizer_ns;
    const Time time = trained(three(), scaled(kAdamW, each), 2).optimizer_ns;
    EXPECT_GE(time, plain + 2 * kParameters);
    EXPECT_LE(time, plain + 2 * kParameters + 1000);
  }
}

// found_inf.item(): the host waits for backward before it gives the device the step's kernels. A
// fused step reads found_inf on the device.
TEST(GradScalerTest, TheHostWaitsUnlessTheStepIsFused) {
  const auto operations = [](OptimizerImplementation implementation, bool clips) {
    Training training = scaled(kAdamW, implementation);
    training.clip_grad_norm = clips;
    std::int64_t waits = 0;
    struct Waits final : StreamOpConsumer {
      explicit Waits(std::int64_t& of) : count(of) {}
      void operator()(const StreamOp& op) override {
        count += op.kind == StreamOpKind::kStreamSync;
      }
      std::int64_t& count;
    } counts(waits);
    SimulationOptions options;
    options.training = training;
    options.training.steps = 3;
    options.consumers = {&counts};
    EXPECT_TRUE(simulate(three(), test::tiny_hardware(), options).errors.empty());
    return waits;
  };
  EXPECT_EQ(operations(kForeach, false), 3);
  EXPECT_EQ(operations(kForLoop, true), 3);
  EXPECT_EQ(operations(kFused, false), 0);
  EXPECT_EQ(operations(kFused, true), 0);
}

// In PyTorch's words. A fused step takes them, unless they are clipped.
TEST(GradScalerTest, GradientsInHalfPrecisionAreRefused) {
  const Program halves = of_parameters({{4 * kMiB, DType::kF16}});
  const auto errors = [&](OptimizerImplementation implementation, bool clips) {
    SimulationOptions options;
    options.training = scaled(kAdamW, implementation);
    options.training.clip_grad_norm = clips;
    options.training.steps = 2;
    return simulate(halves, test::tiny_hardware(), options).errors;
  };
  ASSERT_EQ(errors(kForeach, false).size(), 1u);
  EXPECT_EQ(errors(kForeach, false)[0].message,
            "the optimizer's step: Attempting to unscale FP16 gradients.");
  EXPECT_EQ(errors(kFused, true).size(), 1u);
  EXPECT_TRUE(errors(kFused, false).empty());
}

}  // namespace
}  // namespace ferry::sim
