#include "sim/verify/trials/try_core.h"

#include <algorithm>
#include <cstdint>

#include "sim/verify/oracles/bounds.h"
#include "sim/verify/oracles/errors.h"
#include "sim/verify/oracles/hazards.h"
#include "sim/verify/oracles/leaks.h"
#include "sim/verify/oracles/moves.h"
#include "sim/verify/oracles/recomputes.h"
#include "sim/verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// Returns the size of the program's largest storage, rounded up to a page as the host's pool does.
std::int64_t largest_storage(const Program& program) {
  constexpr std::int64_t kPage = 4096;
  std::int64_t largest = 0;
  for (const Layout& type : program.types) largest = std::max(largest, hull(type).end_bytes);
  return (largest + kPage - 1) / kPage * kPage;
}

// Whether the step is one graph task: then what could be held need not be reloaded.
bool is_one_task(const Recipe& recipe) {
  const bool nests =
      std::any_of(recipe.layers.begin(), recipe.layers.end(),
                  [](const Layer& layer) { return layer.kind == LayerKind::kNested; });
  return !recipe.segments && recipe.microbatches == 1 && !recipe.retain &&
         recipe.derivatives == 1 && recipe.failure == StepFailure::kNone && !nests;
}

std::optional<Verdict> judge(const Trial& trial, std::int64_t largest, const sim::Simulation& keep,
                             const sim::Simulation& run) {
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  const std::string error = first_difference(messages(keep), messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, error};
  if (keep.gradients != run.gradients)
    return Verdict{Oracle::kValue, "a gradient differs from keep's"};
  if (const auto leak = judge_leaks(run.leftovers)) return leak;
  if (is_one_task(trial.recipe) && trial.options.hold_bytes == kUnlimited &&
      run.statistics.reloaded_count > run.statistics.offloaded_count) {
    return Verdict{Oracle::kMoves, "a storage was reloaded twice while it could have been held"};
  }
  return judge_bounds(trial.options, run.statistics, largest);
}

}  // namespace

bool struck(const sim::Simulation& run, const Conditions& conditions) {
  return run.out_of_memory > 0 || (conditions.choices && conditions.choices->failure());
}

Hardware test_hardware() {
  Hardware hardware;
  hardware.name = "test";
  hardware.memory_bytes = std::int64_t{1} << 40;
  hardware.host_memory_bytes = std::int64_t{1} << 40;
  hardware.flops_per_us.fill(1'000'000);
  hardware.memory_bytes_per_us = 50'000;
  hardware.kernel_min_ns = 1'000;
  hardware.launch_ns = 500;
  hardware.link = {20'000, 20'000, 10'000, 18'000, 500};
  return hardware;
}

bool counts_are_known(const Recipe& recipe) {
  const auto strange = [](const Layer& layer) {
    const bool nested = layer.kind == LayerKind::kNested;
    const bool reentrant = (layer.segment & kReentrantBit) != 0 && layer.opens > 0;
    return nested || reentrant || layer.extra >= Extra::kInnerBackward;
  };
  return recipe.segments && recipe.embeds && recipe.failure == StepFailure::kNone &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

std::optional<Verdict> try_core(const Trial& trial, const Subject& subject,
                                const Conditions& conditions) {
  const Program program = make_program(trial.recipe);
  const Hardware hardware = test_hardware();
  const sim::Simulation keep = sim::simulate(without_segments(program), hardware, {});
  MoveWatch moves(program);
  OpCounter counter;
  sim::SimulationOptions options;
  options.offload = trial.options;
  options.rules = subject.rules;
  options.mutation = subject.mutation;
  options.choices = conditions.choices;
  options.world = subject.world_fault;
  options.segments = trial.plan;
  options.consumers = {&moves};
  const bool counted = counts_are_known(trial.recipe);
  if (counted) options.consumers.push_back(&counter);
  if (conditions.watch) options.consumers.push_back(conditions.watch);
  const sim::Simulation run = sim::simulate(program, hardware, options);
  if (struck(run, conditions)) return judge_failure(keep, run);
  if (auto verdict = judge(trial, largest_storage(program), keep, run)) return verdict;
  if (counted) {
    const std::string wrong =
        miscounted(expected_counts(program, trial.plan.get()), counter.counts);
    if (!wrong.empty()) return Verdict{Oracle::kCount, wrong};
  }
  if (!moves.complaint().empty()) return Verdict{Oracle::kMoves, moves.complaint()};
  return std::nullopt;
}

}  // namespace ferry::verify
