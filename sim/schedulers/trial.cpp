#include "sim/schedulers/trial.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/draws.h"
#include "sim/oracles/leaks.h"
#include "sim/schedulers/unmoved.h"
#include "sim/simulation.h"
#include "sim/verify/judge.h"
#include "sim/verify/random_program.h"

namespace ferry::sim {
Program scheduler_program(const SchedulerEntry& entry, verify::Recipe recipe,
                          std::uint64_t number) {
  if (entry.program) return entry.program(number);
  if (recipe.layers.empty()) recipe.layers.emplace_back();  // limits change the layers there are
  recipe.embeds = true;  // else there may be nothing to go backward through
  entry.limit(recipe);
  return verify::make_program(recipe);
}

Program scheduler_program(const SchedulerEntry& entry, std::uint64_t number, std::uint64_t seed) {
  Draws draws(seed, number);
  return scheduler_program(entry, verify::draw_recipe(draws), number);
}

std::optional<verify::Verdict> try_scheduler(const SchedulerEntry& entry, const Program& program,
                                             StreamOpConsumer* watch) {
  const Hardware hardware = verify::test_hardware();
  const Simulation keep = simulate(verify::without_segments(program), hardware, {});
  Unmoved unmoved;
  SimulationOptions options;
  options.consumers = {&unmoved};
  if (watch) options.consumers.push_back(watch);
  options.scheduler = [&](const SimDevice& device, const SimAutograd& autograd) {
    return unmoved.watch(entry.make(device, autograd));
  };
  Simulation run = simulate(program, hardware, options);
  // What was no memory any more, or not yet, is why a value is wrong.
  std::stable_partition(run.hazards.begin(), run.hazards.end(),
                        [](const Hazard& hazard) { return hazard.kind != HazardKind::kValue; });
  if (auto verdict = verify::judge_hazards(run.hazards)) return verdict;
  const std::string error = verify::first_difference(verify::messages(keep), verify::messages(run));
  if (!error.empty()) return verify::Verdict{"error", error};
  if (keep.gradients != run.gradients) {
    return verify::Verdict{"value", "a gradient differs from keep's"};
  }
  if (auto verdict = verify::judge_leaks(run.leftovers)) return verdict;
  if (entry.moves_all && unmoved.any()) return verify::Verdict{"moves", unmoved.words()};
  return std::nullopt;
}

}  // namespace ferry::sim
