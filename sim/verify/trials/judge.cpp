#include "sim/verify/trials/judge.h"

#include <algorithm>
#include <cstdint>

#include "sim/verify/oracles/bounds.h"
#include "sim/verify/oracles/leaks.h"
#include "sim/verify/oracles/moves.h"
#include "sim/verify/oracles/recomputes.h"
#include "sim/verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// The most bytes that one storage of the program has, as pools round them: a page of the host's.
std::int64_t largest_storage(const Program& program) {
  constexpr std::int64_t kPage = 4096;
  std::int64_t largest = 0;
  for (const Layout& type : program.types) largest = std::max(largest, hull(type).end_bytes);
  return (largest + kPage - 1) / kPage * kPage;
}

// Of a step that is one graph task: what could be held need not be reloaded.
bool one_task(const Recipe& recipe) {
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
  if (one_task(trial.recipe) && trial.options.hold_bytes == kUnlimited &&
      run.statistics.reloaded_count > run.statistics.offloaded_count) {
    return Verdict{Oracle::kMoves, "a storage was reloaded twice while it could have been held"};
  }
  return judge_bounds(trial.options, run.statistics, largest);
}

bool struck(const sim::Simulation& run, const Conditions& conditions) {
  return run.out_of_memory > 0 || (conditions.choices && conditions.choices->failure());
}

bool told(const sim::Simulation& run) {
  return std::any_of(run.errors.begin(), run.errors.end(),
                     [](const sim::ProgramError& error) { return is_told_failure(error.message); });
}

}  // namespace

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

bool is_modelled(const Recipe& recipe) {
  const auto strange = [](const Layer& layer) {
    const bool nested = layer.kind == LayerKind::kNested;
    const bool reentrant = (layer.segment & kReentrantBit) != 0 && layer.opens > 0;
    return nested || reentrant || layer.extra >= Extra::kInnerBackward;
  };
  return recipe.segments && recipe.embeds && recipe.failure == StepFailure::kNone &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

std::vector<std::string> messages(const sim::Simulation& run) {
  std::vector<std::string> texts;
  for (const sim::ProgramError& error : run.errors) texts.push_back(error.message);
  return texts;
}

std::string first_difference(const std::vector<std::string>& keep,
                             const std::vector<std::string>& run) {
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (i >= keep.size() || keep[i] != run[i]) return run[i];
  }
  return keep.size() > run.size() ? "an error was lost: " + keep[run.size()] : "";
}

bool is_told_failure(const std::string& message) {
  return message.find("injected fault") != std::string::npos ||
         message.find("out of memory") != std::string::npos ||
         message.find("out of pinned host memory") != std::string::npos;
}

std::optional<Verdict> judge_hazards(const std::vector<check::Hazard>& hazards) {
  if (hazards.empty()) return std::nullopt;
  const check::Hazard& hazard = hazards.front();
  Oracle oracle = check::is_race(hazard.kind) ? Oracle::kHappensBefore : Oracle::kLifetime;
  if (hazard.kind == check::HazardKind::kValue) oracle = Oracle::kValue;
  if (hazard.kind == check::HazardKind::kDeadlock) oracle = Oracle::kLiveness;
  if (hazard.kind == check::HazardKind::kLimit) oracle = Oracle::kPool;
  return Verdict{oracle, to_string(hazard), hazard};
}

std::optional<Verdict> judge_failure(const sim::Simulation& keep, const sim::Simulation& run) {
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (const auto leak = judge_leaks(run.leftovers)) return leak;
  if (run.errors.size() > keep.errors.size() + 3) {
    return Verdict{Oracle::kError,
                   "one failure made further calls fail: " + run.errors.back().message};
  }
  if (told(run)) return std::nullopt;
  const std::string error = first_difference(messages(keep), messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, "a failure whose cause is lost: " + error};
  if (keep.gradients != run.gradients)
    return Verdict{Oracle::kValue, "a failure changed a gradient"};
  return std::nullopt;
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
  options.world = subject.world;
  options.segments = trial.plan;
  options.consumers = {&moves};
  const bool modelled = is_modelled(trial.recipe);
  if (modelled) options.consumers.push_back(&counter);
  if (conditions.watch) options.consumers.push_back(conditions.watch);
  const sim::Simulation run = sim::simulate(program, hardware, options);
  if (struck(run, conditions)) return judge_failure(keep, run);
  if (auto verdict = judge(trial, largest_storage(program), keep, run)) return verdict;
  if (modelled) {
    const std::string wrong =
        miscounted(modelled_counts(program, trial.plan.get()), counter.counts);
    if (!wrong.empty()) return Verdict{Oracle::kCount, wrong};
  }
  if (!moves.complaint().empty()) return Verdict{Oracle::kMoves, moves.complaint()};
  return std::nullopt;
}

}  // namespace ferry::verify
