// Layers with skips, in random stages on random GPUs, by every schedule, each stage by a policy of
// its own: the gradients are those of one micro-batch after the other, nothing races, and nothing
// is left.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/run/pipeline_simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/run/support/staged_layers.h"
#include "tests/verify/support/gen.h"

namespace ferry::sim {
namespace {

RC_GTEST_PROP(PipelineSimulationProp, NoPolicyChangesAGradient, ()) {
  using test::in_range;
  const std::size_t devices = static_cast<std::size_t>(*in_range(1, 5));
  const auto schedule = static_cast<ScheduleKind>(*in_range(0, 3));
  const bool interleaved = schedule == ScheduleKind::kInterleaved;
  const std::size_t each = interleaved ? static_cast<std::size_t>(*in_range(1, 4)) : 1;
  const std::size_t stages = devices * each;
  const int layers = std::max(2, static_cast<int>(stages) + *in_range(0, 4));
  const Program program = test::staged_layers({.layers = layers,
                                               .elements = 1 << *in_range(8, 15),
                                               .forward_ns = *in_range(1, 20) * 1'000,
                                               .backward_ns = *in_range(1, 20) * 1'000,
                                               .skips = *in_range(0, layers / 2 + 1)});
  const StagedProgram staged = test::in_stages(program, stages);

  PipelineOptions options;
  options.schedule = schedule;
  options.devices = static_cast<std::uint32_t>(devices);
  options.microbatches = static_cast<std::size_t>(*in_range(1, 6)) * (interleaved ? devices : 1);
  options.checkpoint = static_cast<CheckpointMode>(*in_range(0, 3));
  for (std::size_t s = 0; s < stages; ++s) {
    options.policies.push_back(static_cast<StagePolicy>(*in_range(0, 4)));
  }
  options.portals = *in_range(0, 2) == 1;
  options.offload = *test::any_options();
  RC_CLASSIFY(interleaved, "interleaved");
  RC_CLASSIFY(!options.portals, "relayed");

  const PipelineSimulation run = simulate_pipeline(staged, test_hardware(), options);
  RC_LOG() << (run.errors.empty() ? "" : run.errors[0])
           << (run.hazards.empty() ? "" : to_string(run.hazards[0])) << "\n";
  RC_ASSERT(run.errors.empty());
  RC_ASSERT(run.hazards.empty());
  RC_ASSERT(!run.leftovers.any());
  const Program plain = test::one_by_one(staged, options.microbatches);
  RC_ASSERT(run.gradients == simulate(plain, test_hardware(), {}).gradients);
  RC_ASSERT(simulate_pipeline(staged, test_hardware(), options).digest == run.digest);
}

}  // namespace
}  // namespace ferry::sim
