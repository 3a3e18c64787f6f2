#include "sim/verify/schedulers/try_scheduler.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/choices/draws.h"
#include "sim/run/simulation.h"
#include "sim/verify/oracles/errors.h"
#include "sim/verify/oracles/hazards.h"
#include "sim/verify/oracles/leaks.h"
#include "sim/verify/programs/random_program.h"
#include "sim/verify/schedulers/unmoved.h"
#include "sim/verify/trials/try_core.h"

namespace ferry::verify::schedulers {
Program scheduler_program(const SchedulerEntry& entry, Recipe recipe, std::uint64_t number) {
  if (entry.program) return entry.program(number);
  if (recipe.layers.empty()) recipe.layers.emplace_back();  // limits change the layers there are
  recipe.embeds = true;  // else there may be nothing to go backward through
  entry.limit(recipe);
  return make_program(recipe);
}

Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number, std::uint64_t seed) {
  choices::Draws draws(seed, number);
  return scheduler_program(entry, draw_recipe(draws), number);
}

std::optional<Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program,
                                     StreamOpConsumer* watch) {
  const Hardware hardware = test_hardware();
  const sim::Simulation keep = sim::simulate(without_segments(program), hardware, {});
  Unmoved unmoved;
  sim::SimulationOptions options;
  options.consumers = {&unmoved};
  if (watch) options.consumers.push_back(watch);
  options.scheduler = [&](const sim::SimDevice& device, const sim::SimAutograd& autograd) {
    return unmoved.watch(entry.make(device, autograd));
  };
  sim::Simulation run = sim::simulate(program, hardware, options);
  // A use of memory that is gone, or not there yet, explains the wrong value, and so comes first.
  std::stable_partition(run.hazards.begin(), run.hazards.end(), [](const check::Hazard& hazard) {
    return hazard.kind != check::HazardKind::kValue;
  });
  if (auto verdict = judge_hazards(run.hazards)) return verdict;
  const std::string error = first_difference(messages(keep), messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, error};
  if (keep.gradients != run.gradients) {
    return Verdict{Oracle::kValue, "a gradient differs from keep's"};
  }
  if (auto verdict = judge_leaks(run.leftovers)) return verdict;
  if (entry.moves_all && unmoved.any()) return Verdict{Oracle::kMoves, unmoved.words()};
  return std::nullopt;
}

}  // namespace ferry::verify::schedulers
