// A training whose optimizer's state lives on the host: what is in memory, and what moves.
#include "sim/run/training/host_state.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "formats/program_file.h"
#include "scenarios/hardware.h"
#include "scenarios/programs.h"
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
using enum OptimizerState;

Training adamw(OptimizerState state, OptimizerImplementation implementation = kFused) {
  return {kAdamW, implementation, state};
}

TEST(HostStateTest, TheHostHasTheState) {
  const Simulation device = trained(three(), adamw(kDevice), 3);
  EXPECT_EQ(device.host_peak_bytes, 0);
  for (const OptimizerState state : {kHost, kHostInBackward}) {
    const Simulation host = trained(three(), adamw(state), 3);
    EXPECT_EQ(host.host_peak_bytes, 2 * kParameters);
    EXPECT_EQ(host.d2h_bytes, 2 * kParameters);
    EXPECT_EQ(host.h2d_bytes, 2 * kParameters);
  }
}

// Four parameters of 256 MiB: the state of a piece takes 128 MiB, and so 256 MiB ahead are two.
TEST(HostStateTest, TheDeviceHasAPartOfIt) {
  const std::int64_t each = 256 * kMiB;
  const Program program = of_parameters(
      {{each, DType::kBF16}, {each, DType::kBF16}, {each, DType::kBF16}, {each, DType::kBF16}});
  const Simulation device = trained(program, adamw(kDevice), 3);
  const Simulation host = trained(program, adamw(kHost), 3);
  EXPECT_GE(device.device_peak_bytes, 16 * each);
  EXPECT_LT(host.device_peak_bytes, 8 * each + 1024 * kMiB);
  EXPECT_EQ(host.host_peak_bytes, 8 * each);
}

// Besides parameter, gradient and two moments: a copy of the parameter's piece, and the roots of
// its second moment.
TEST(HostStateTest, AnUpdateThatIsNotFusedTakesTwoPiecesMore) {
  const Program program = of_parameters({{64 * kMiB, DType::kBF16}});
  EXPECT_EQ(trained(program, adamw(kHost, kForeach), 3).device_peak_bytes, 6 * 64 * kMiB);
}

TEST(HostStateTest, AnUpdateInBackwardDropsGradients) {
  const Program program = load_program(find_program("gpt2"));
  const Hardware card = find_hardware("h100");
  SimulationOptions options;
  options.training = adamw(kHost);
  options.training.steps = 3;
  const Simulation host = simulate(program, card, options);
  options.training.state = kHostInBackward;
  const Simulation dropped = simulate(program, card, options);
  EXPECT_TRUE(host.hazards.empty() && dropped.hazards.empty());
  EXPECT_TRUE(host.errors.empty() && dropped.errors.empty());
  EXPECT_LE(dropped.device_peak_bytes, host.device_peak_bytes);
  EXPECT_LE(dropped.step_ns, host.step_ns);
}

TEST(HostStateTest, EachOptimizerRuns) {
  for (const Optimizer optimizer : {kSgd, kMomentum, kAdam, kAdamW}) {
    for (const OptimizerImplementation implementation : {kForeach, kForLoop, kFused}) {
      for (const OptimizerState state : {kHost, kHostInBackward}) {
        const Simulation run = trained(three(), {optimizer, implementation, state}, 3);
        const std::int64_t tensors = optimizer == kSgd ? 0 : optimizer == kMomentum ? 1 : 2;
        EXPECT_EQ(run.host_peak_bytes, tensors * kParameters);
      }
    }
  }
}

// A state of less than 64 KiB stays, as does the count of a fused optimizer.
TEST(HostStateTest, SmallStatesStay) {
  const Program program = of_parameters({{16 << 10, DType::kF32}, {1 << 20, DType::kF32}});
  const Simulation run = trained(program, adamw(kHost), 3);
  EXPECT_EQ(run.host_peak_bytes, 2 << 20);
}

}  // namespace
}  // namespace ferry::sim
