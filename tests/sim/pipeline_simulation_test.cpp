#include "sim/pipeline_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/programs.h"
#include "formats/program_file.h"
#include "tests/sim/staged_layers.h"

namespace ferry::sim {
namespace {

PipelineOptions options(ScheduleKind schedule, std::uint32_t devices, std::size_t microbatches) {
  PipelineOptions options;
  options.schedule = schedule;
  options.devices = devices;
  options.microbatches = microbatches;
  return options;
}

void expect_safe(const PipelineSimulation& run) {
  for (const std::string& error : run.errors) ADD_FAILURE() << error;
  for (const Hazard& hazard : run.hazards) ADD_FAILURE() << to_string(hazard);
  EXPECT_FALSE(run.leftovers.any()) << run.leftovers.storages << " storages";
}

std::vector<std::uint64_t> plain_gradients(const StagedProgram& staged, const Hardware& hardware,
                                           std::size_t microbatches) {
  const Program program = test::one_by_one(staged, microbatches);
  const Simulation run = simulate(program, hardware, {});
  EXPECT_TRUE(run.errors.empty() && run.hazards.empty());
  return run.gradients;
}

struct Form {
  ScheduleKind schedule;
  std::uint32_t devices;
  std::size_t each;
  std::size_t microbatches;
};

class ClosedForms : public ::testing::TestWithParam<Form> {};

// What is alive of a stage is what its layers save: two activations a micro-batch and stage, but
// for the first stage's input, which is the program's.
TEST_P(ClosedForms, BubbleAndMicrobatchesAliveAreThese) {
  const auto [schedule, devices, each, m] = GetParam();
  const int layers = static_cast<int>(devices * each);
  const std::int64_t bytes = 2 << 20;
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = layers, .elements = bytes / 2}), devices * each);
  ASSERT_EQ(staged.stages.size(), devices * each);
  const PipelineSimulation run = simulate_pipeline(staged, test::weightless_hardware(),
                                                   options(schedule, devices, m));
  expect_safe(run);
  ASSERT_EQ(run.devices.size(), devices);
  const std::int64_t expected = bubble_permille(schedule, devices, each, m);
  EXPECT_EQ(run.bubble_permille(), expected);
  const Schedule actions = make_schedule(schedule, devices, each, m);
  for (std::size_t d = 0; d < devices; ++d) {
    EXPECT_EQ(run.devices[d].bubble_permille, expected) << d;
    // Beside what is alive: what is made or arrives, and what leaves.
    const auto alive = static_cast<std::int64_t>(alive_max(actions.devices[d]));
    std::printf("device %zu alive %ld peak/bytes %.3f\n", d, alive, double(run.devices[d].peak_bytes)/double(bytes));
  }
}

INSTANTIATE_TEST_SUITE_P(
    PipelineSimulation, ClosedForms,
    ::testing::Values(Form{ScheduleKind::kGpipe, 4, 1, 8},
                      Form{ScheduleKind::kOneForwardOneBackward, 4, 1, 8},
                      Form{ScheduleKind::kOneForwardOneBackward, 4, 1, 2},
                      Form{ScheduleKind::kOneForwardOneBackward, 1, 1, 3},
                      Form{ScheduleKind::kInterleaved, 4, 2, 8},
                      Form{ScheduleKind::kInterleaved, 2, 3, 4}));

TEST(PipelineSimulationTest, GradientsAreThoseOfOneMicrobatchAfterTheOther) {
  const StagedProgram staged = test::in_stages(test::staged_layers({.layers = 8, .skips = 3}), 4);
  const auto expected = plain_gradients(staged, test::tiny_hardware(), 4);
  for (const ScheduleKind schedule : {ScheduleKind::kGpipe, ScheduleKind::kOneForwardOneBackward,
                                      ScheduleKind::kInterleaved}) {
    for (const StagePolicy policy : {StagePolicy::kKeep, StagePolicy::kOffload,
                                     StagePolicy::kCheckpoint, StagePolicy::kCheckpointOffload}) {
      for (const bool portals : {true, false}) {
        PipelineOptions each =
            options(schedule, schedule == ScheduleKind::kInterleaved ? 2 : 4, 4);
        each.policies.assign(4, policy);
        each.portals = portals;
        each.offload.window_bytes = 0;
        const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), each);
        SCOPED_TRACE(std::string(name(schedule)) + " " + std::string(name(policy)) +
                     (portals ? "" : " relayed"));
        expect_safe(run);
        EXPECT_EQ(run.gradients, expected);
        std::printf("%s %s %d: step %ld peak %ld d2h %ld\n", std::string(name(schedule)).c_str(), std::string(name(policy)).c_str(), int(portals), run.step_ns, run.peak_bytes(), run.devices[0].d2h_bytes);
      }
    }
  }
}

TEST(PipelineSimulationTest, Gpt2) {
  const StagedProgram staged = cut_into_stages(load_program(find_program("gpt2")), {0, 4, 8, 11});
  for (const std::size_t m : {4, 8, 32}) {
    auto o = options(ScheduleKind::kOneForwardOneBackward, 4, m);
    o.check = true;
    const PipelineSimulation run = simulate_pipeline(staged, find_hardware("a100"), o);
    expect_safe(run);
    std::printf("m %zu step %ld bubble %ld peak %ld ops %ld\n", m, run.step_ns, run.bubble_permille(), run.peak_bytes(), run.operations);
  }
}

}  // namespace
}  // namespace ferry::sim
