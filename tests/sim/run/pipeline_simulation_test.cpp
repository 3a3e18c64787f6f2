#include "sim/run/pipeline_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "tests/sim/run/support/staged_layers.h"

namespace ferry::sim {
namespace {

constexpr ScheduleKind kGpipe = ScheduleKind::kGpipe;
constexpr ScheduleKind k1F1B = ScheduleKind::kOneForwardOneBackward;
constexpr ScheduleKind kInterleaved = ScheduleKind::kInterleaved;
constexpr StagePolicy kEveryPolicy[] = {StagePolicy::kKeep, StagePolicy::kOffload,
                                        StagePolicy::kCheckpoint, StagePolicy::kCheckpointOffload};

PipelineOptions options(ScheduleKind schedule, std::uint32_t devices, std::size_t microbatches) {
  PipelineOptions options;
  options.schedule = schedule;
  options.devices = devices;
  options.microbatches = microbatches;
  return options;
}

void expect_safe(const PipelineSimulation& run) {
  for (const std::string& error : run.errors) ADD_FAILURE() << error;
  for (const check::Hazard& hazard : run.hazards) ADD_FAILURE() << to_string(hazard);
  EXPECT_FALSE(run.leftovers.any()) << run.leftovers.storages << " storages";
}

std::vector<std::uint64_t> one_by_one_gradients(const StagedProgram& staged,
                                                const Hardware& hardware,
                                                std::size_t microbatches) {
  const Simulation run = simulate(test::one_by_one(staged, microbatches), hardware, {});
  EXPECT_TRUE(run.errors.empty());
  EXPECT_TRUE(run.hazards.empty());
  return run.gradients;
}

// How many forwards of a device's layers have no backward yet, at most. A layer is a stage.
std::int64_t alive_on(const test::OpLog& log, std::size_t device, std::size_t devices) {
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const std::string& name : log.kernels()) {
    const bool forward = name.starts_with("layer");
    if (!forward && !name.starts_with("grad")) continue;
    if (std::stoul(name.substr(forward ? 5 : 4)) % devices != device) continue;
    alive += forward ? 1 : -1;
    most = std::max(most, alive);
  }
  return most;
}

struct Form {
  ScheduleKind schedule;
  std::size_t devices;
  std::size_t each;
  std::size_t microbatches;

  // As in the head of shared/pipeline/schedule.h.
  std::size_t alive(std::size_t device) const {
    const std::size_t behind = devices - device;
    if (schedule == kGpipe) return microbatches;
    if (schedule == k1F1B) return std::min(microbatches, behind);
    return std::min(each * microbatches, 2 * (behind - 1) + (each - 1) * devices + 1);
  }
};

class ClosedForms : public ::testing::TestWithParam<Form> {};

TEST_P(ClosedForms, AreTheBubbleAndTheMicrobatchesAliveOfEqualStages) {
  const Form form = GetParam();
  const std::int64_t bytes = 2 << 20;
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = static_cast<int>(form.devices * form.each),
                                           .elements = bytes / 2}),
                      form.devices * form.each);
  test::OpLog log;
  PipelineOptions with =
      options(form.schedule, static_cast<std::uint32_t>(form.devices), form.microbatches);
  with.consumers = {&log};
  const PipelineSimulation run = simulate_pipeline(staged, test::weightless_hardware(), with);
  expect_safe(run);
  ASSERT_EQ(run.devices.size(), form.devices);
  const std::int64_t bubble =
      bubble_permille(form.schedule, form.devices, form.each, form.microbatches);
  EXPECT_EQ(run.bubble_permille(), bubble);
  for (std::size_t d = 0; d < form.devices; ++d) {
    EXPECT_EQ(run.devices[d].bubble_permille, bubble) << d;
    const auto alive = static_cast<std::int64_t>(form.alive(d));
    EXPECT_EQ(alive_on(log, d, form.devices), alive) << d;
    // Of each, at least one activation; at most two, and what is on its way.
    EXPECT_GE(run.devices[d].peak_bytes, alive * bytes) << d;
    EXPECT_LE(run.devices[d].peak_bytes, (2 * alive + 4) * bytes) << d;
  }
}

INSTANTIATE_TEST_SUITE_P(
    PipelineSimulationTest, ClosedForms,
    ::testing::Values(Form{kGpipe, 4, 1, 8}, Form{kGpipe, 2, 1, 1}, Form{k1F1B, 4, 1, 8},
                      Form{k1F1B, 4, 1, 2}, Form{k1F1B, 3, 1, 32}, Form{kInterleaved, 4, 2, 8},
                      Form{kInterleaved, 2, 3, 4}, Form{kInterleaved, 1, 4, 3}),
    [](const auto& form) {
      std::string text(name(form.param.schedule));
      for (const std::size_t n : {form.param.devices, form.param.each, form.param.microbatches}) {
        text += "_" + std::to_string(n);
      }
      return text;
    });

TEST(PipelineSimulationTest, GpipeNeedsAtLeastWhat1F1BDoes) {
  const StagedProgram staged = test::in_stages(test::staged_layers({.layers = 8, .skips = 3}), 4);
  for (const std::size_t m : {1, 2, 4, 16}) {
    const auto gpipe =
        simulate_pipeline(staged, test::weightless_hardware(), options(kGpipe, 4, m));
    const auto other = simulate_pipeline(staged, test::weightless_hardware(), options(k1F1B, 4, m));
    for (std::size_t d = 0; d < 4; ++d) {
      EXPECT_GE(gpipe.devices[d].peak_bytes, other.devices[d].peak_bytes) << m << " " << d;
    }
  }
}

TEST(PipelineSimulationTest, GradientsAreThoseOfOneMicrobatchAfterTheOther) {
  const StagedProgram staged = test::in_stages(test::staged_layers({.layers = 8, .skips = 3}), 4);
  const auto expected = one_by_one_gradients(staged, test::tiny_hardware(), 4);
  for (const ScheduleKind schedule : {kGpipe, k1F1B, kInterleaved}) {
    for (const StagePolicy policy : kEveryPolicy) {
      for (const bool portals : {true, false}) {
        SCOPED_TRACE(std::string(name(schedule)) + ", " + std::string(name(policy)) +
                     (portals ? "" : ", relayed"));
        PipelineOptions with = options(schedule, schedule == kInterleaved ? 2 : 4, 4);
        with.policies.assign(4, policy);
        with.portals = portals;
        with.offload.window_bytes = 0;
        const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), with);
        expect_safe(run);
        EXPECT_EQ(run.gradients, expected);
        EXPECT_EQ(simulate_pipeline(staged, test::tiny_hardware(), with).digest, run.digest);
      }
    }
  }
}

// Captured: edges in slots of their own, and a loss that is one. Where a value goes to several
// stages the gradients are added up in another order, and a sum has its first summand's layout: so
// what is below the U-Net's skips differs from the plain step, alike for every policy.
TEST(PipelineSimulationTest, CapturesRunAsTheyAre) {
  for (const auto& [program, first] : {std::pair{"gpt2", std::vector<std::size_t>{0, 4, 8, 11}},
                                       std::pair{"unet", std::vector<std::size_t>{0, 3, 6, 9}}}) {
    const StagedProgram staged = cut_into_stages(load_program(find_program(program)), first);
    const Hardware hardware = find_hardware("a100");
    const auto plain = one_by_one_gradients(staged, hardware, 4);
    const auto expected = simulate_pipeline(staged, hardware, options(k1F1B, 4, 4)).gradients;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(expected[i] == 0, plain[i] == 0) << i;
      const bool below_a_skip = std::string(program) == "unet" && staged.stage_of_global[i] == 0;
      EXPECT_EQ(expected[i] != plain[i], below_a_skip && plain[i] != 0) << i;
    }
    for (const StagePolicy policy : kEveryPolicy) {
      PipelineOptions with = options(k1F1B, 4, 4);
      with.policies.assign(4, policy);
      const PipelineSimulation run = simulate_pipeline(staged, hardware, with);
      SCOPED_TRACE(std::string(program) + ", " + std::string(name(policy)));
      expect_safe(run);
      EXPECT_EQ(run.gradients, expected);
    }
  }
}

// The policy of one stage is about its device alone.
TEST(PipelineSimulationTest, APolicyNeedsLessOnItsStagesDevice) {
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = 16, .forward_ns = 40'000'000}), 4);
  const PipelineSimulation keep =
      simulate_pipeline(staged, test::tiny_hardware(), options(kGpipe, 4, 8));
  EXPECT_EQ(keep.devices[1].d2h_bytes, 0);
  for (const StagePolicy policy : kEveryPolicy) {
    if (policy == StagePolicy::kKeep) continue;
    PipelineOptions with = options(kGpipe, 4, 8);
    with.policies = {StagePolicy::kKeep, policy};
    with.offload.window_bytes = 0;
    with.offload.min_bytes = 0;
    const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), with);
    SCOPED_TRACE(name(policy));
    expect_safe(run);
    EXPECT_LT(2 * run.devices[1].peak_bytes, keep.devices[1].peak_bytes);
    EXPECT_EQ(run.devices[0].peak_bytes, keep.devices[0].peak_bytes);
    const bool moves = policy != StagePolicy::kCheckpoint;
    EXPECT_EQ(run.devices[1].d2h_bytes > 0, moves);
    EXPECT_EQ(run.devices[1].d2h_bytes % (2 << 20), 0);  // activations, and no weight
    EXPECT_EQ(run.devices[0].d2h_bytes + run.devices[2].d2h_bytes, 0);
    EXPECT_EQ(run.devices[1].compute_ns > keep.devices[1].compute_ns,
              policy != StagePolicy::kOffload);
  }
}

// To the host go the inputs of the stage, once a micro-batch, and nothing else.
TEST(PipelineSimulationTest, WhatACheckpointedStageIsHandedMayMove) {
  const std::int64_t bytes = 2 << 20;
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = 8, .elements = bytes / 2}), 2);
  PipelineOptions with = options(kGpipe, 2, 5);
  with.policies.assign(2, StagePolicy::kCheckpointOffload);
  with.offload.window_bytes = 0;
  with.offload.window_tensors = 1;
  const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), with);
  expect_safe(run);
  EXPECT_EQ(run.devices[0].d2h_bytes, 0);  // its input is the program's
  EXPECT_EQ(run.devices[1].d2h_bytes, 5 * bytes);
  EXPECT_EQ(run.devices[1].h2d_bytes, 4 * bytes);  // the last one had not left
}

// Choices are by pack of a forward, and each micro-batch is one.
TEST(PipelineSimulationTest, EachMicrobatchOfAStageIsARunOfItsOffloader) {
  const std::int64_t bytes = 2 << 20;
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = 8, .elements = bytes / 2}), 2);
  PipelineOptions with = options(kGpipe, 2, 5);
  with.policies = {StagePolicy::kKeep, StagePolicy::kOffload};
  with.offload.window_bytes = 0;
  with.offload.offload = {true};  // what the second stage's first layer read
  const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), with);
  expect_safe(run);
  EXPECT_EQ(run.devices[1].d2h_bytes, 5 * bytes);
}

// A table that crosses has no gradient, and what is made of it none: not even where the stages run
// again, when the core cannot know yet.
TEST(PipelineSimulationTest, WhatHasNoGradientGetsNone) {
  Builder b;
  const TypeId type = b.type({1024});
  const Slot table = b.global(GlobalKind::kBuffer, type);
  const Slot w = b.global(GlobalKind::kParameter, type);
  const CodeId body = b.code(CodeKind::kBody, "B");
  const Slot gradient = b.argument(body);
  b.result(body, b.op(body, "grad", {gradient, b.saved(body)}, type));
  const CodeId constant = b.code(CodeKind::kBody, "C");
  const Slot unwanted = b.argument(constant);
  b.result(constant, b.op(constant, "unwanted", {unwanted, b.saved(constant)}, type));
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const auto node = [&](CodeId of, Slot in, const char* name) {
    const Slot out = b.slot(forward);
    b.add(forward, MakeNode{name, b.node_id(), {in}, {out}, {in}, of});
    b.add(forward, Op{name, {in, table}, {out}, {type}, {}, 0, 0, 0, 0});
    return out;
  };
  b.add(forward, Module{"m.0", true});
  const Slot x = node(body, w, "first");
  const Slot crosses = b.op(forward, "table", {table}, type);
  b.add(forward, Module{"m.0", false});
  b.add(forward, Module{"m.1", true});
  const Slot made = node(constant, crosses, "constant");
  const Slot y = b.slot(forward);
  const CodeId sum = b.code(CodeKind::kBody, "Sum");
  const Slot both = b.argument(sum);
  b.result(sum, both);
  b.result(sum, both);
  b.add(forward, MakeNode{"sum", b.node_id(), {x, made}, {y}, {}, sum});
  b.add(forward, Op{"sum", {x, made}, {y}, {type}, {}, 0, 0, 0, 0});
  b.add(forward, Module{"m.1", false});
  b.result(forward, y);
  const Slot loss = b.slot(0);
  b.add(0, Call{forward, {}, {loss}});
  b.add(0, Backward{{loss}, {}, {}, false, false});
  const StagedProgram staged = test::in_stages(b.program, 2);
  ASSERT_EQ(staged.routes.size(), 2u);
  for (const StagePolicy policy : kEveryPolicy) {
    test::OpLog log;
    PipelineOptions with = options(k1F1B, 2, 2);
    with.policies.assign(2, policy);
    with.consumers = {&log};
    expect_safe(simulate_pipeline(staged, test::tiny_hardware(), with));
    const std::vector<std::string> kernels = log.kernels();
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "grad"), 2);
    EXPECT_EQ(std::count(kernels.begin(), kernels.end(), "unwanted"), 0);
  }
}

// A skip past two stages crosses one link by a portal, and three where it is relayed.
TEST(PipelineSimulationTest, PortalsSkipTheStagesBetween) {
  const std::int64_t bytes = 2 << 20;
  const StagedProgram staged =
      test::in_stages(test::staged_layers({.layers = 4, .elements = bytes / 2, .skips = 1}), 4);
  PipelineOptions with = options(k1F1B, 4, 3);
  const PipelineSimulation portals = simulate_pipeline(staged, test::tiny_hardware(), with);
  with.portals = false;
  const PipelineSimulation relayed = simulate_pipeline(staged, test::tiny_hardware(), with);
  expect_safe(portals);
  expect_safe(relayed);
  // By micro-batch: values from the stages before, and gradients from the stages after.
  EXPECT_EQ(portals.devices[0].peer_bytes, 3 * 2 * bytes);
  EXPECT_EQ(portals.devices[1].peer_bytes, 3 * (1 + 1) * bytes);
  EXPECT_EQ(portals.devices[3].peer_bytes, 3 * 2 * bytes);
  EXPECT_EQ(relayed.devices[0].peer_bytes, portals.devices[0].peer_bytes - 3 * bytes);
  EXPECT_EQ(relayed.devices[1].peer_bytes, portals.devices[1].peer_bytes + 3 * bytes);
  EXPECT_EQ(relayed.devices[2].peer_bytes, portals.devices[2].peer_bytes + 3 * 2 * bytes);
  EXPECT_GT(relayed.devices[2].peak_bytes, portals.devices[2].peak_bytes);
}

TEST(PipelineSimulationTest, ParametersAndOptimizersStateAreOnTheirStagesDevice) {
  const StagedProgram staged = cut_into_stages(load_program(find_program("gpt2")), {0, 4, 8, 11});
  PipelineOptions with = options(k1F1B, 4, 1);
  const PipelineSimulation without = simulate_pipeline(staged, find_hardware("a100"), with);
  with.optimizer = Optimizer::kAdamW;
  const PipelineSimulation adamw = simulate_pipeline(staged, find_hardware("a100"), with);
  expect_safe(adamw);
  std::vector<std::int64_t> parameters(4, 0);
  for (std::size_t i = 0; i < staged.program.globals.size(); ++i) {
    const Global& global = staged.program.globals[i];
    if (!global.requires_grad || global.alias != kNoSlot) continue;
    const std::int64_t bytes = storage_bytes(staged.program.types[global.type]);
    parameters[staged.stage_of_global[i]] += bytes;
  }
  for (std::size_t d = 0; d < 4; ++d) {
    const std::int64_t more = adamw.devices[d].peak_bytes - without.devices[d].peak_bytes;
    EXPECT_GE(more, 2 * parameters[d]) << d;
    EXPECT_LE(more, 2 * parameters[d] * 21 / 20) << d;  // blocks are rounded
  }
}

TEST(PipelineSimulationTest, AFailureIsToldAndLeavesNothing) {
  const StagedProgram staged = test::in_stages(test::staged_layers({.layers = 4}), 4);
  PipelineOptions with = options(kGpipe, 4, 8);
  with.device_bytes = 40 << 20;
  const PipelineSimulation run = simulate_pipeline(staged, test::tiny_hardware(), with);
  ASSERT_EQ(run.errors.size(), 1u);
  EXPECT_NE(run.errors[0].find("memory"), std::string::npos) << run.errors[0];
  EXPECT_FALSE(run.leftovers.any());
}

TEST(PipelineSimulationTest, StagesThatDoNotDivideAreRefused) {
  const StagedProgram staged = test::in_stages(test::staged_layers({.layers = 4}), 4);
  const auto simulated = [&](const PipelineOptions& with) {
    return simulate_pipeline(staged, test::tiny_hardware(), with);
  };
  EXPECT_THROW(simulated(options(kGpipe, 3, 4)), std::invalid_argument);
  EXPECT_THROW(simulated(options(k1F1B, 2, 4)), std::invalid_argument);
  EXPECT_THROW(simulated(options(kInterleaved, 2, 3)), std::invalid_argument);
  EXPECT_THROW(simulated(options(kGpipe, 4, 0)), std::invalid_argument);
}

}  // namespace
}  // namespace ferry::sim
