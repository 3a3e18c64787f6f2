#include "real/train/gpt_pipe.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/plan_options.h"
#include "formats/staged_plan.h"
#include "real/train/policy.h"
#include "real/train/workload.h"
#include "shared/pipeline/balance.h"

namespace ferry::real::train {

namespace {

// Returns the number of layers of the chain in each stage, balanced by multiplications per token.
std::vector<std::int64_t> balanced(const GptOptions& gpt, std::int64_t stages) {
  const std::int64_t block = 12 * gpt.width * gpt.width + gpt.context * gpt.width;
  std::vector<std::int64_t> costs = {gpt.width};
  costs.resize(static_cast<std::size_t>(gpt.layers) + 1, block);
  costs.push_back(gpt.vocabulary * gpt.width);
  const auto sizes = balance(costs, static_cast<std::size_t>(stages));
  return {sizes.begin(), sizes.end()};
}

// Throws if the plan is not for this training.
void require_its_own(const StagedPlan& plan, const Options& options) {
  const auto refuse = [&](const std::string& text) {
    throw InputError(options.plan.string(), 0, text);
  };
  if (plan.program != "gpt") {
    refuse("the plan is for a program called '" + plan.program +
           "': expected a plan for a capture of `ferry train gpt`");
  }
  const auto stages = static_cast<std::int64_t>(plan.stages.size());
  if (stages != options.stages) {
    refuse(fmt::format("the plan is for {} stages, and --stages says {}", stages, options.stages));
  }
  if (plan.microbatches != options.microbatches) {
    refuse(fmt::format("the plan is for {} micro-batches, and --microbatches says {}",
                       plan.microbatches, options.microbatches));
  }
  if (options.cuda && plan.devices > 1) {
    refuse(fmt::format("the plan is for {} devices, and there is one GPU here", plan.devices));
  }
  std::int64_t units = 0;
  for (const PlannedStage& stage : plan.stages) units += stage.units;
  const std::int64_t layers = options.gpt.layers + 2;
  if (units != layers) {
    refuse(fmt::format(
        "the plan's program has {} units, and this model {} layers: the embedding, {} blocks, the "
        "head",
        units, layers, options.gpt.layers));
  }
}

// Returns the options of the offloader with which the plan was simulated.
OffloadOptions planned_offload(const StagedPlan& plan, const Options& options) {
  CoreOptions core;
  try {
    core = named_options(plan.options);
  } catch (const std::invalid_argument& error) {
    throw InputError(options.plan.string(), 0, error.what());
  }
  OffloadOptions result = offload_options(options);
  result.pinned(core.host_memory == HostMemory::kPinned);
  result.copy_streams(core.copy_streams).reload_pool(core.reload_pool);
  result.min_bytes(core.min_bytes).window_tensors(core.window_tensors).window(core.window_bytes);
  result.prefetch(core.prefetch_bytes).prefetch_tensors(core.prefetch_tensors);
  return result.hold(core.hold_bytes);
}

// Sets the devices and their stages.
void place(PipeOptions& pipe, std::int64_t devices, const Options& options) {
  pipe.devices(std::vector<torch::Device>(static_cast<std::size_t>(devices), device(options)));
  pipe.stages_per_device(options.stages / devices).microbatches(options.microbatches);
  pipe.preserve_rng_state(false);  // nothing in it is random
}

PipeOptions planned(const Options& options) {
  const StagedPlan plan = read_staged_plan(options.plan);
  require_its_own(plan, options);
  std::vector<std::int64_t> layers;
  std::vector<StagePolicy> policies;
  for (const PlannedStage& stage : plan.stages) {
    layers.push_back(stage.units);
    policies.push_back(stage.policy);
  }
  PipeOptions pipe;
  place(pipe, plan.devices, options);
  pipe.balance(layers).schedule(plan.schedule).stage_policies(policies);
  return pipe.checkpoint(CheckpointMode::kAlways).offload(planned_offload(plan, options));
}

}  // namespace

Pipe make_pipe(const Options& options, const Gpt& model) {
  if (!options.plan.empty()) return Pipe(model->chain(), planned(options));
  PipeOptions pipe;
  place(pipe, options.stages / options.stages_per_device, options);
  pipe.balance(balanced(options.gpt, options.stages)).schedule(options.schedule);
  return Pipe(model->chain(), pipe.checkpoint(options.pipe_checkpoint));
}

}  // namespace ferry::real::train
