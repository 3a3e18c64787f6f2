#include "verify/trials/try_core.h"
#include "sim/run/training/test_hardware.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/check/vain_waits.h"
#include "verify/oracles/accounts.h"
#include "verify/oracles/bounds.h"
#include "verify/oracles/errors.h"
#include "verify/oracles/hazards.h"
#include "verify/oracles/leaks.h"
#include "verify/oracles/lifespans.h"
#include "verify/oracles/lives.h"
#include "verify/oracles/moves.h"
#include "verify/oracles/recomputes.h"
#include "verify/oracles/replays.h"
#include "verify/oracles/versions.h"
#include "verify/programs/random_program.h"
#include "verify/trials/chosen_checkpoints.h"

namespace ferry::verify {
namespace {

// Returns the size of the program's largest storage, rounded up to a page as the host's pool does.
std::int64_t largest_storage(const Program& program) {
  constexpr std::int64_t kPage = 4096;
  std::int64_t largest = 0;
  for (const Layout& type : program.types) largest = std::max(largest, hull(type).end_bytes);
  return (largest + kPage - 1) / kPage * kPage;
}

// Returns true if the step is one graph task. Then a storage that could be held need not be
// reloaded.
bool is_one_task(const Recipe& recipe) {
  const bool nests =
      std::any_of(recipe.layers.begin(), recipe.layers.end(),
                  [](const Layer& layer) { return layer.kind == LayerKind::kNested; });
  return !recipe.segments && recipe.microbatches == 1 && !recipe.retain &&
         recipe.derivatives == 1 && recipe.failure == StepFailure::kNone && !nests;
}

// Returns true if only spans recompute. Then verify/oracles/replays.h can count the calls.
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
                                       " calls, not " + std::to_string(must)};
  };
  if (kernels != expected.kernels + expected.again) {
    return differs("spans recompute", kernels - expected.kernels, expected.again);
  }
  const SpanCounts& spans = expected.spans;
  const std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 9> counts = {{
      {"calls_replayed", run.replays.calls_replayed, expected.again},
      {"spans", run.replays.spans, spans.spans},
      {"calls", run.replays.calls, spans.calls},
      {"calls_left", run.replays.calls_left, spans.calls_left},
      {"saved", run.replays.saved, spans.saved},
      {"passed_on", run.replays.passed_on, spans.passed_on},
      {"held", run.replays.held, spans.held},
      {"replays", run.replays.replays, spans.replays},
      {"alive", run.replays.alive, 0},
  }};
  for (const auto& [name, is, must] : counts) {
    if (is == must) continue;
    return Verdict{Oracle::kCount, "spans count " + std::to_string(is) + " " + name + ", not " +
                                       std::to_string(must)};
  }
  return std::nullopt;
}

// Returns true if some call is a checkpoint.
bool has_checkpoints(const Recipe& recipe) {
  if (!recipe.segments) return false;
  return recipe.whole ||
         std::any_of(recipe.layers.begin(), recipe.layers.end(), [](const Layer& l) {
           const bool in_backward = l.kind == LayerKind::kNested && l.segment % 2 != 0;
           return in_backward || (l.opens > 0 && (l.segment & kSpanBit) == 0);
         });
}

// Returns true if a saved tensor is written that will be needed, and verify/oracles/versions.h says
// which errors must follow.
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

// Returns true if a backward makes a graph. Such a graph may save recomputed tensors.
bool makes_graphs(const Recipe& recipe) {
  return recipe.derivatives > 1 ||
         std::any_of(recipe.layers.begin(), recipe.layers.end(),
                     [](const Layer& layer) { return layer.extra == Extra::kInnerCreates; });
}

// Returns true if a segment or a span lies inside another.
bool has_nesting(const Trial& trial) {
  const Recipe& recipe = trial.recipe;
  if (has_spans(trial)) {
    return recipe.segments ||
           std::any_of(trial.spans.begin(), trial.spans.end(),
                       [](const DrawnSpan& span) { return !span.inner.empty(); });
  }
  int depth = recipe.whole ? 1 : 0;
  for (const Layer& layer : recipe.layers) {
    depth += layer.opens;
    if (depth > 1) return true;
    depth = std::max(depth - layer.closes, recipe.whole ? 1 : 0);
  }
  return false;
}

// Returns true if each kernel runs once in forward, recomputes do not nest, and a recompute makes
// no nodes of its own.
bool lifespans_are_known(const Trial& trial) {
  const Recipe& recipe = trial.recipe;
  const auto strange = [](const Layer& layer) {
    return layer.kind == LayerKind::kNested || layer.extra >= Extra::kInnerBackward ||
           (layer.opens > 0 && is_reentrant(layer.segment));
  };
  return (recipe.segments || has_spans(trial)) && recipe.microbatches == 1 && !recipe.retain &&
         recipe.derivatives == 1 && recipe.failure == StepFailure::kNone && !has_nesting(trial) &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

// Returns true if the trial's spans are used. (A span may need a tensor that the failing step
// writes, even if no node saved it.)
bool runs_spans(const Trial& trial) {
  return has_spans(trial) &&
         (trial.recipe.failure != StepFailure::kSavedWritten || refusals_are_known(trial));
}

// Removes the error of a failing recompute. A run that keeps everything has no such error.
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
  const std::string error = first_difference(sim::messages(keep), sim::messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, error};
  if (keep.gradients != run.gradients)
    return Verdict{Oracle::kValue, "a gradient differs from the run that keeps everything"};
  if (const auto leak = judge_leaks(run.leftovers)) return leak;
  if (is_one_task(trial.recipe) && trial.options.hold_bytes == kUnlimited &&
      run.statistics.reloaded_count > run.statistics.offloaded_count) {
    return Verdict{Oracle::kMoves, "a storage was reloaded twice while it could have been held"};
  }
  return judge_bounds(trial.options, run.statistics, bounds);
}

// Gives the run that keeps everything the errors that a run with recomputes must have. If these are
// others, the gradients of the two runs differ, and are not compared.
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

// If a call fails as well, fewer backwards may reach this error.
void forgive_refused(const sim::Simulation& keep, sim::Simulation& run) {
  std::erase_if(run.errors, [](const sim::ProgramError& each) { return refuses(each.message); });
  run.gradients = keep.gradients;
}

// The backward of each such call must fail with this error, and nothing else may fail.
std::optional<Verdict> judge_refused(const RecomputeCounts& expected, const sim::Simulation& run) {
  const std::vector<std::string> errors = sim::messages(run);
  const auto refused = std::count_if(errors.begin(), errors.end(), refuses);
  if (static_cast<std::size_t>(refused) != errors.size() || refused != expected.refused) {
    return Verdict{Oracle::kError, "a kept tensor was written: " + std::to_string(refused) +
                                       " backwards raise the error, not " +
                                       std::to_string(expected.refused)};
  }
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  return judge_leaks(run.leftovers);
}

// Returns true if the program itself frees too early when everything is kept.
bool frees_too_early(const Program& program, const Hardware& hardware,
                     const std::shared_ptr<const sim::Prepared>& prepared) {
  sim::SimulationOptions options;
  options.prepared = prepared;
  options.segments_as_calls = true;
  options.reuse_at_free = true;
  sim::Simulation keep = sim::simulate(program, hardware, options);
  return forgive_frees(keep.hazards, Uses::kOfAll);
}

// Removes hazards of kind kFreeUnderUse if a call or an allocation failed, or if the program itself
// frees too early: those are not the core's fault. It removes only those whose earlier access is
// the program's own, unless the core could not protect a block and kept it (`quarantined`).
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

// Everything that watches a run of the core, from its first operation on.
struct Watches {
  Watches(const Trial& trial, const Program& program)
      : moves(program), accounts(trial.options), lives(program) {}
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Called before the options are used. They must not outlive this object.
  void watch(sim::SimulationOptions& options) {
    options.offload->log = [this](const Decision& decision) { accounts.decided(decision); };
    options.consumers = {&moves, &accounts, &lives, &waits};
    options.task_watches = {&lives, &accounts};
    options.hooks_watch = &accounts;
    if (!has_lifespans) return;
    options.consumers.push_back(&lifespans);
    options.task_watches.push_back(&lifespans);
  }
  std::optional<Verdict> complaint(const Trial& trial, const sim::Simulation& run) const;

  MoveWatch moves;
  Accounts accounts;
  Lives lives;
  check::VainWaits waits;
  bool has_lifespans = false;
  Lifespans kept;  // watches the run that keeps everything
  Lifespans lifespans{&kept};
};

std::optional<Verdict> Watches::complaint(const Trial& trial, const sim::Simulation& run) const {
  if (!makes_graphs(trial.recipe) && !lives.complaint().empty()) {
    return Verdict{Oracle::kLeak, lives.complaint()};
  }
  if (!lifespans.complaint().empty()) return Verdict{Oracle::kLeak, lifespans.complaint()};
  if (!waits.complaint().empty()) return Verdict{Oracle::kMoves, waits.complaint()};
  if (!moves.complaint().empty()) return Verdict{Oracle::kMoves, moves.complaint()};
  if (run.warnings != accounts.warnings()) {
    return Verdict{Oracle::kAccounts, "it warned " + std::to_string(run.warnings.size()) +
                                          " times that the host is full, which is not as expected"};
  }
  if (run.checkpoints.recomputes != accounts.recomputes()) {
    return Verdict{Oracle::kCount, std::to_string(run.checkpoints.recomputes) +
                                       " recomputes are counted, but " +
                                       std::to_string(accounts.recomputes()) + " logged"};
  }
  const std::string wrong = accounts.complaint(run.statistics);
  if (!wrong.empty()) return Verdict{Oracle::kAccounts, wrong};
  return std::nullopt;
}

// The counts that the oracles expect of a run, and those that they made in it.
struct Counts {
  bool recomputes = false;  // recomputes are known
  bool replays = false;
  RecomputeCounts expected;
  OpCounter counter;
};

std::optional<Verdict> judge_counts(const Counts& counts, const Program& program,
                                    const sim::SimulationOptions& options,
                                    const sim::Simulation& run) {
  if (counts.recomputes) {
    if (auto verdict = judge_counts(counts.expected, counts.counter.counts, run)) return verdict;
  }
  if (!counts.replays) return std::nullopt;
  return judge_replays(program, options, counts.counter.counts, run);
}

}  // namespace

bool counts_are_known(const Recipe& recipe) {
  const auto strange = [](const Layer& layer) {
    const bool nested = layer.kind == LayerKind::kNested;
    const bool reentrant = is_reentrant(layer.segment) && layer.opens > 0;
    const bool spans = (layer.segment & kSpanBit) != 0 && layer.opens > 0;
    return nested || reentrant || spans || layer.extra >= Extra::kInnerBackward;
  };
  return recipe.segments && recipe.failure == StepFailure::kNone &&
         std::none_of(recipe.layers.begin(), recipe.layers.end(), strange);
}

std::optional<Verdict> try_core(const Trial& drawn, const Subject& subject,
                                const Conditions& conditions) {
  Recipe right;
  Trial trial = in_chain(drawn, subject.rules, right);
  trial.recipe.waits_late = right.waits_late = true;
  if (trial.options.min_bytes == 0) trial.options.host_warn_percent = 0;  // to warn at once
  const bool refusals = refusals_are_known(trial);
  const Program program =
      make_program(trial.recipe, refusals ? LateWrites::kOfAny : LateWrites::kOfKept);
  const Hardware hardware = sim::test_hardware();
  const std::shared_ptr<const sim::Prepared> prepared = sim::prepare(program, hardware);
  Watches watches(trial, program);
  watches.has_lifespans = lifespans_are_known(trial);
  sim::Simulation keep =
      run_that_keeps(program, hardware, prepared, watches.has_lifespans ? &watches.kept : nullptr);
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
  watches.watch(options);
  Counts counts{.recomputes = counts_are_known(trial.recipe) && !has_spans(trial),
                .replays = replays_are_known(trial),
                .expected = {},
                .counter = {}};
  if (counts.recomputes || counts.replays) options.consumers.push_back(&counts.counter);
  if (conditions.watch) options.consumers.push_back(conditions.watch);
  sim::Simulation run = sim::simulate(program, hardware, options);
  forgive(trial.recipe.failure, run.errors);
  if (refusals) keep_as_refused(trial, options, program, keep, run);
  RecomputeCounts& expected = counts.expected;
  if (counts.recomputes) {
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
  if (auto verdict = judge_counts(counts, program, options, run)) return verdict;
  return watches.complaint(trial, run);
}

}  // namespace ferry::verify
