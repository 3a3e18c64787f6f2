#include "sim/verify/trials/try_core.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/verify/oracles/accounts.h"
#include "sim/verify/oracles/bounds.h"
#include "sim/verify/oracles/errors.h"
#include "sim/verify/oracles/hazards.h"
#include "sim/verify/oracles/leaks.h"
#include "sim/verify/oracles/lives.h"
#include "sim/verify/oracles/moves.h"
#include "sim/verify/oracles/recomputes.h"
#include "sim/verify/oracles/replays.h"
#include "sim/verify/oracles/vain_waits.h"
#include "sim/verify/oracles/versions.h"
#include "sim/verify/programs/random_program.h"
#include "sim/verify/trials/chosen_checkpoints.h"

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

// Whether what runs again does so in spans alone, which sim/verify/oracles/replays.h counts.
bool replays_are_known(const Trial& trial) {
  const Recipe& recipe = trial.recipe;
  const auto strange = [](const Layer& layer) {
    return layer.kind == LayerKind::kNested || (layer.opens > 0 && (layer.segment & kSpanBit) == 0);
  };
  if (recipe.failure != StepFailure::kNone) return false;
  if (!recipe.segments) return has_spans(trial);
  return !recipe.whole && std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

std::optional<Verdict> judge_replays(const Program& program, const sim::SimulationOptions& options,
                                     const OpCounts& counted, const sim::Simulation& run) {
  const ReplayCounts expected = expected_replays(program, options.spans, options.prepared);
  std::int64_t kernels = 0;
  for (const auto& [name, count] : counted) kernels += count;
  const auto differs = [](const char* what, std::int64_t found, std::int64_t must) {
    return Verdict{Oracle::kCount, std::string(what) + " " + std::to_string(found) +
                                       " calls again, not " + std::to_string(must)};
  };
  if (kernels != expected.kernels + expected.again) {
    return differs("spans run", kernels - expected.kernels, expected.again);
  }
  if (run.replays.calls_replayed == expected.again) return std::nullopt;
  return differs("spans say that they run", run.replays.calls_replayed, expected.again);
}

// Whether some call is a checkpoint.
bool has_checkpoints(const Recipe& recipe) {
  if (!recipe.segments) return false;
  return recipe.whole ||
         std::any_of(recipe.layers.begin(), recipe.layers.end(), [](const Layer& l) {
           const bool in_backward = l.kind == LayerKind::kNested && l.segment % 2 != 0;
           return in_backward || (l.opens > 0 && (l.segment & kSpanBit) == 0);
         });
}

// Whether a saved tensor is written that will be needed, and sim/verify/oracles/versions.h says
// what comes of it.
bool refusals_are_known(const Trial& trial) {
  const Recipe& recipe = trial.recipe;
  if (recipe.failure != StepFailure::kSavedWritten) return false;
  bool spans = false;
  for (const Layer& layer : recipe.layers) {
    const bool opens = recipe.segments && layer.opens > 0;
    if (opens && is_reentrant(layer.segment)) return false;
    if (layer.kind == LayerKind::kNested && has_plan(trial)) return false;
    spans |= opens && (layer.segment & kSpanBit) != 0;
  }
  return !spans || !has_checkpoints(recipe);
}

// Whether a backward makes a graph, in which what runs again may be saved.
bool makes_graphs(const Recipe& recipe) {
  return recipe.derivatives > 1 ||
         std::any_of(recipe.layers.begin(), recipe.layers.end(),
                     [](const Layer& layer) { return layer.extra == Extra::kInnerCreates; });
}

// Whether its spans are in force. (A span may need again what the failing step writes, though no
// node saved it.)
bool runs_spans(const Trial& trial) {
  return has_spans(trial) &&
         (trial.recipe.failure != StepFailure::kSavedWritten || refusals_are_known(trial));
}

// Takes out the error of a step that fails by what is run again: a run that keeps everything has
// none.
void forgive(StepFailure failure, std::vector<sim::ProgramError>& errors) {
  if (!fails_again(failure)) return;
  const auto is_it = [failure](const sim::ProgramError& error) {
    if (failure == StepFailure::kRecomputeRaises) return error.message == kRecomputeFails;
    return error.message.starts_with("ferry::checkpoint: ");
  };
  const auto found = std::find_if(errors.begin(), errors.end(), is_it);
  if (found != errors.end()) errors.erase(found);
}

std::optional<Verdict> judge(const Trial& trial, const ProgramBounds& bounds,
                             const sim::Simulation& keep, const sim::Simulation& run) {
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
  return judge_bounds(trial.options, run.statistics, bounds);
}

// Gives the run that keeps everything the errors of one that runs again what it does. Where these
// are others, fewer or more gradients come.
void keep_as_refused(const Trial& trial, const sim::SimulationOptions& options,
                     const Program& program, sim::Simulation& keep, sim::Simulation& run) {
  const SegmentPlan* const plan = has_plan(trial) ? trial.plan.get() : nullptr;
  std::vector<sim::ProgramError> errors =
      expected_errors(program, options.spans, plan, options.prepared);
  if (!misrefused(errors, keep.errors).empty()) run.gradients = keep.gradients;
  keep.errors = std::move(errors);
}

bool refuses(const std::string& error) {
  return error == "Tensor cached during selective activation checkpoint has been mutated";
}

// Where a call fails as well, fewer backwards may come so far.
void forgive_refused(const sim::Simulation& keep, sim::Simulation& run) {
  std::erase_if(run.errors, [](const sim::ProgramError& each) { return refuses(each.message); });
  run.gradients = keep.gradients;
}

// Each such call's backward fails for that reason, and nothing else does.
std::optional<Verdict> judge_refused(const RecomputeCounts& expected, const sim::Simulation& run) {
  const std::vector<std::string> errors = messages(run);
  const auto refused = std::count_if(errors.begin(), errors.end(), refuses);
  if (static_cast<std::size_t>(refused) != errors.size() || refused != expected.refused) {
    return Verdict{Oracle::kError, "a kept tensor was written: " + std::to_string(refused) +
                                       " backwards say so, not " +
                                       std::to_string(expected.refused)};
  }
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  return judge_leaks(run.leftovers);
}

// Whether the program itself frees too early, where everything is kept.
bool frees_too_early(const Program& program, const Hardware& hardware,
                     const std::shared_ptr<const sim::Prepared>& prepared) {
  sim::SimulationOptions options;
  options.prepared = prepared;
  options.segments_as_calls = true;
  options.reuse_at_free = true;
  sim::Simulation keep = sim::simulate(program, hardware, options);
  return forgive_frees(keep.hazards, Uses::kOfAll);
}

// What a program itself frees too early, or where it could not go on, is not the core's. Nor is
// what the core could not even protect, and kept for as long as it lived.
template <class Careless>
void forgive_own_frees(bool is_struck, const Careless& is_careless, sim::Simulation& run) {
  std::vector<check::Hazard> others = run.hazards;
  const Uses uses = run.statistics.quarantined > 0 ? Uses::kOfAll : Uses::kOfTheProgram;
  if (forgive_frees(others, uses) && (is_struck || is_careless())) run.hazards = std::move(others);
}

std::optional<Verdict> judge_counts(const RecomputeCounts& expected, const OpCounts& counted,
                                    const sim::Simulation& run) {
  std::string wrong = miscounted(expected.ops, counted);
  if (wrong.empty()) wrong = miscounted(expected, run.checkpoints);
  if (wrong.empty()) return std::nullopt;
  return Verdict{Oracle::kCount, wrong};
}

}  // namespace

bool struck(const sim::Simulation& run, const Conditions& conditions) {
  return run.out_of_memory > 0 || (conditions.choices && conditions.choices->failure());
}

sim::Simulation run_that_keeps(const Program& program, const Hardware& hardware,
                               std::shared_ptr<const sim::Prepared> prepared) {
  sim::SimulationOptions options;
  options.prepared = std::move(prepared);
  options.segments_as_calls = true;
  options.check_order = false;
  return sim::simulate(program, hardware, options);
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
    const bool reentrant = is_reentrant(layer.segment) && layer.opens > 0;
    const bool spans = (layer.segment & kSpanBit) != 0 && layer.opens > 0;
    return nested || reentrant || spans || layer.extra >= Extra::kInnerBackward;
  };
  return recipe.segments && recipe.embeds && recipe.failure == StepFailure::kNone &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

std::optional<Verdict> try_core(const Trial& drawn, const Subject& subject,
                                const Conditions& conditions) {
  Recipe right;
  Trial trial = in_chain(drawn, subject.rules, right);
  trial.recipe.waits_late = right.waits_late = true;
  const bool refusals = refusals_are_known(trial);
  const Program program =
      make_program(trial.recipe, refusals ? LateWrites::kOfAny : LateWrites::kOfKept);
  const Hardware hardware = test_hardware();
  const std::shared_ptr<const sim::Prepared> prepared = sim::prepare(program, hardware);
  sim::Simulation keep = run_that_keeps(program, hardware, prepared);
  MoveWatch moves(program);
  Accounts accounts(trial.options);
  Lives lives(program);
  VainWaits waits;
  OpCounter counter;
  sim::SimulationOptions options;
  options.prepared = prepared;
  options.offload = trial.options;
  options.rules = subject.rules;
  options.mutation = subject.mutation;
  options.choices = conditions.choices;
  options.world = subject.world_fault;
  options.segments = trial.plan;
  options.reuse_at_free = true;
  if (runs_spans(trial)) options.spans = spans_in(program, trial.spans);
  options.selective = policies_of(trial, program, counts_are_known(trial.recipe));
  options.consumers = {&moves, &accounts, &lives, &waits};
  options.task_watch = &lives;
  options.hooks_watch = &accounts;
  const bool counted = counts_are_known(trial.recipe) && !has_spans(trial);
  const bool replayed = replays_are_known(trial);
  if (counted || replayed) options.consumers.push_back(&counter);
  if (conditions.watch) options.consumers.push_back(conditions.watch);
  sim::Simulation run = sim::simulate(program, hardware, options);
  forgive(trial.recipe.failure, run.errors);
  if (refusals) keep_as_refused(trial, options, program, keep, run);
  RecomputeCounts expected;
  if (counted) {
    const std::set<std::string> kept = kept_ops(options);
    expected = right == trial.recipe ? expected_counts(program, trial.plan.get(), kept)
                                     : expected_counts(make_program(right), trial.plan.get(), kept);
  }
  forgive_own_frees(
      struck(run, conditions), [&] { return frees_too_early(program, hardware, prepared); }, run);
  if (struck(run, conditions)) {
    if (expected.refused > 0) forgive_refused(keep, run);
    return judge_failure(keep, run);
  }
  if (expected.refused > 0) return judge_refused(expected, run);
  const std::string misplaced = refusals ? misrefused(keep.errors, run.errors) : "";
  if (!misplaced.empty()) return Verdict{Oracle::kVersion, misplaced};
  const ProgramBounds bounds{largest_storage(program),
                             outputs_in_checkpoints(program, moved_ops(options))};
  if (auto verdict = judge(trial, bounds, keep, run)) return verdict;
  if (counted) {
    if (auto verdict = judge_counts(expected, counter.counts, run)) return verdict;
  }
  if (replayed) {
    if (auto verdict = judge_replays(program, options, counter.counts, run)) return verdict;
  }
  if (!makes_graphs(trial.recipe) && !lives.complaint().empty()) {
    return Verdict{Oracle::kLeak, lives.complaint()};
  }
  if (!waits.complaint().empty()) return Verdict{Oracle::kMoves, waits.complaint()};
  if (!moves.complaint().empty()) return Verdict{Oracle::kMoves, moves.complaint()};
  const std::string wrong = accounts.complaint(run.statistics);
  if (!wrong.empty()) return Verdict{Oracle::kAccounts, wrong};
  return std::nullopt;
}

}  // namespace ferry::verify
