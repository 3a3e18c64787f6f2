#include "plan/session.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "formats/parallel.h"
#include "plan/stop.h"

namespace ferry::plan {
namespace {

Problem problem_of(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{.whole = program,
                  .program = with_segments(program, request.modules),
                  .hardware = hardware,
                  .training = request.training,
                  .survey = {},
                  .spans = request.spans,
                  .alloc_conf = request.alloc_conf,
                  .workspace_bytes = request.workspace_bytes,
                  .judged = request.judged,
                  .offload_all = request.offload_all};
  problem.survey = survey(problem.program, hardware);
  problem.prepared_whole = sim::prepare(program, hardware);
  problem.prepared_program = sim::prepare(problem.program, hardware);
  return problem;
}

// Bound on the searches for one budget. A whole training may need more or less memory than its
// simulated steps; each further search uses a corrected budget. Larger: closer results, more time.
constexpr int kRounds = 4;
// No further search if the correction is at most 1/kCloseParts of the budget. Larger: more
// searches.
constexpr std::int64_t kCloseParts = 200;
// A training's search tries every n-th table with noise: kSomeNoise in the first round,
// kLittleNoise in later ones. Larger: fewer plans, less time.
constexpr std::size_t kSomeNoise = 4;
constexpr std::size_t kLittleNoise = 16;
// A budget in bytes that no plan fits, so that a search looks for the least memory.
constexpr std::int64_t kLeastBudget = 1;
// Bound on the whole trainings of contenders that one round simulates. Larger: more contenders get
// the chance to fit.
constexpr int kContenders = 256;
// Whole trainings that are simulated together. Larger: better use of many processors, more
// simulations that turn out to be unnecessary.
constexpr std::size_t kScannedAtOnce = 4;
// Bound on the candidates that needing_less simulates. Larger: a smaller minimum may be found.
constexpr std::size_t kLeastRuns = 64;
// Bound on the trainings that are judged after a stop. Larger: a better row, a later end.
constexpr int kJudgedByThen = 16;
// needing_less looks for plans that need at least 1/kLessParts less than the least known memory.
// Larger: smaller gains are looked for.
constexpr std::int64_t kLessParts = 512;

// True if `a` is better: the faster of two that fit, else the one that fits, else the one that
// needs less memory.
bool is_better(const Verdict& a, const Verdict& b, const Limits& limits) {
  const auto key = [&](const Verdict& each) {
    const bool pins = each.unlimited.host_peak_bytes > limits.host_bytes;
    return std::tuple(each.least_bytes == 0, !each.fits, pins,
                      each.fits ? each.step_ns : each.least_bytes,
                      each.fits ? each.least_bytes : each.step_ns);
  };
  return key(a) < key(b);
}

sim::Simulation run_keep(const Problem& problem, const PlanRequest& request) {
  StopsRun stops(request.stop);
  Problem::How how{.whole = true};
  if (request.stop) how.consumers.push_back(&stops);
  return problem.run({std::nullopt, keep_all(problem.survey)}, how);
}

// Sets the problem's optimizer time, then returns keep's cost.
Cost cost_of_keep(Problem& problem, const sim::Simulation& keeps) {
  problem.optimizer_ns = keeps.optimizer_ns;
  return problem.cost({std::nullopt, keep_all(problem.survey)});
}

}  // namespace

Session::Session(const Program& program, const Hardware& hardware, const PlanRequest& request,
                 std::shared_ptr<SpanTables> tables)
    : request_(request),
      problem_(problem_of(program, hardware, request)),
      keeps_(run_keep(problem_, request)),
      keep_(cost_of_keep(problem_, keeps_)),
      trace_(trace_training(problem_.program, hardware, problem_.training, keeps_.optimizer_ns)),
      floors_(problem_.program, hardware, trace_),
      trials_(problem_, floors_, request.progress, request.stop),
      chooser_(problem_, keep_, trace_, trials_, std::move(tables)) {}

Limits Session::limits(std::int64_t budget_bytes) const {
  return {budget_bytes, problem_.hardware.host_memory_bytes,
          keep_.fails ? kUnlimited : keep_.device_reserved_bytes};
}

std::optional<Certificate> Session::certificate(std::int64_t budget_bytes) const {
  return certify(problem_.program, problem_.hardware, trace_, budget_bytes);
}

RunAt Session::runs(const Candidate& candidate, bool stops) const {
  return [this, &candidate, stops](std::int64_t device_bytes) {
    if (stops) throw_if(request_.stop);
    return problem_.run(candidate, {.whole = true, .device_bytes = device_bytes});
  };
}

Verdict Session::judge(const Candidate& candidate, const Limits& limits, bool stops) const {
  return plan::judge(runs(candidate, stops), limits, problem_.judged);
}

Verdict Session::judge_at(const Candidate& candidate, Verdict known, const Limits& limits) const {
  return judge_again(std::move(known), runs(candidate, false), limits, problem_.judged);
}

std::optional<sim::Time> Session::step_at(const Candidate& candidate,
                                          std::int64_t device_bytes) const {
  const sim::Simulation run =
      problem_.run(candidate, {.whole = true, .device_bytes = device_bytes});
  return run.errors.empty() ? std::optional(run.step_ns) : std::nullopt;
}

// Simulates the contenders' trainings at the budget's capacity, in order of step time and some at a
// time, until none of the rest can be faster.
void Session::scan(Policy policy, const Limits& limits, Chosen& chosen) {
  const auto may_win = [&](const Tried* each) {
    return !chosen.fits || each->cost.step_ns < chosen.step_ns;
  };
  const std::vector<const Tried*> all = chooser_.contenders(policy, limits);
  int runs = 0;
  for (std::size_t at = 0; at < all.size() && runs < kContenders && may_win(all[at]);) {
    std::vector<const Tried*> fresh;
    std::vector<std::optional<sim::Time>*> into;
    std::size_t end = at;
    for (; end < all.size() && fresh.size() < kScannedAtOnce && may_win(all[end]); ++end) {
      const auto [known, is_fresh] =
          ran_.try_emplace({limits.budget_bytes, trials_.key(all[end]->candidate)});
      if (!is_fresh) continue;
      ++runs;
      fresh.push_back(all[end]);
      into.push_back(&known->second);
    }
    in_parallel(fresh.size(), [&](std::size_t i) {
      throw_if(request_.stop);
      *into[i] = fits_as_a_whole(fresh[i]->candidate, limits);
    });
    for (; at < end && may_win(all[at]); ++at) {
      const std::optional<sim::Time> step_ns =
          ran_.at({limits.budget_bytes, trials_.key(all[at]->candidate)});
      if (!step_ns || (chosen.fits && *step_ns >= chosen.step_ns)) continue;
      chosen.fits = true;
      chosen.step_ns = *step_ns;
      chosen.candidate = all[at]->candidate;
    }
  }
}

std::optional<sim::Time> Session::fits_as_a_whole(const Candidate& candidate,
                                                  const Limits& limits) const {
  const bool allocated = problem_.judged == Judged::kAllocated;
  const sim::Simulation run =
      problem_.run(candidate, {.whole = true, .device_bytes = allocated ? 0 : limits.budget_bytes});
  const std::int64_t bytes = cost_of(run, problem_.judged).device_reserved_bytes;
  const bool fits = run.errors.empty() && run.host_peak_bytes <= limits.host_bytes &&
                    bytes <= std::min(limits.budget_bytes, keep_judged_bytes());
  return fits ? std::optional(run.step_ns) : std::nullopt;
}

void Session::run_at(std::int64_t device_bytes, const std::vector<const Tried*>& all) {
  std::vector<std::pair<const Candidate*, bool*>> fresh;
  for (const Tried* each : all) {
    const auto [known, is_fresh] =
        runs_at_.try_emplace({device_bytes, trials_.key(each->candidate)});
    if (is_fresh) fresh.emplace_back(&each->candidate, &known->second);
  }
  in_parallel(fresh.size(), [&](std::size_t i) {
    *fresh[i].second = step_at(*fresh[i].first, device_bytes).has_value();
  });
}

// The smallest capacity of a plan is between what it allocates and what it reserves. So the plans
// that allocate the least are run slightly below the least known capacity, until none can need
// less.
std::optional<std::pair<Candidate, Verdict>> Session::needing_less(const Limits& limits,
                                                                   std::int64_t known, bool stops) {
  std::optional<std::pair<Candidate, Verdict>> found;
  if (problem_.judged != Judged::kReserved) return found;
  const std::vector<const Tried*> all = chooser_.by_allocated(limits);
  for (std::size_t at = 0; at < std::min(all.size(), kLeastRuns);) {
    const std::int64_t below = known - known / kLessParts;
    std::vector<const Tried*> next;
    for (std::size_t i = at; i < std::min(all.size(), at + kScannedAtOnce); ++i) {
      if (all[i]->cost.device_peak_bytes <= below) next.push_back(all[i]);
    }
    if (next.empty()) break;
    if (stops) throw_if(request_.stop);
    run_at(below, next);
    for (const Tried* each : next) {
      ++at;
      if (!runs_at_.at({below, trials_.key(each->candidate)})) continue;
      Verdict verdict = judge(each->candidate, limits, stops);
      if (verdict.judged_bytes > keep_judged_bytes() || verdict.least_bytes >= known) continue;
      if (verdict.unlimited.host_peak_bytes > limits.host_bytes) continue;
      known = verdict.least_bytes;
      found.emplace(each->candidate, std::move(verdict));
      break;  // run the others below the new minimum
    }
  }
  return found;
}

// Returns the budget for the next search, after `asked`; no value: no further search. If a
// candidate fits `asked` but its whole training lacks some bytes, the next budget is smaller by
// these bytes. If nothing fits, the next search looks for the least memory: a training with
// kLeastBudget, a single step with the least capacity found, because near it the search tries more.
std::optional<std::int64_t> Session::next_budget(const Verdict& verdict, const Limits& limits,
                                                 const Limits& asked) const {
  const std::int64_t lacks = verdict.least_bytes - limits.budget_bytes;
  const bool trains = problem_.is_training();
  if (verdict.least_bytes == 0 || lacks <= 0) return std::nullopt;
  if (trials_.fitting(asked)) {
    if (trains && asked.budget_bytes > limits.budget_bytes) return std::nullopt;
    return std::max<std::int64_t>(asked.budget_bytes - lacks, 1);
  }
  if (asked.budget_bytes != limits.budget_bytes) return std::nullopt;
  return trains && asked.budget_bytes > kLeastBudget ? kLeastBudget : verdict.least_bytes;
}

// Returns how much a round tries. A training takes three times as long to simulate as a step, so
// fewer tables with noise are tried; its first round has no best-first search if nothing fits. If
// the bound says that no plan fits the budget, the rounds look for the least memory, and the first
// one leaves out the best-first search, because later rounds run it.
Chooser::Effort Session::effort(int round, const Limits& limits, const Limits& asked) const {
  const bool first = round == 0;
  if (problem_.is_training()) {
    return {.spans = {.noise = first ? kSomeNoise : kLittleNoise}, .walks = !first};
  }
  const std::optional<Certificate> bound = certificate(limits.budget_bytes);
  if (!bound || limits.budget_bytes >= bound->least_bytes) return {};
  const bool less = asked.budget_bytes <= limits.budget_bytes;
  return {.known = less, .walks = !first};
}

PolicyRow Session::choose(Policy policy, const Limits& limits) {
  Limits asked = limits;
  Chosen chosen;
  std::optional<Verdict> best;
  std::set<std::string> judged;
  const bool capacities = policy == Policy::kBest && problem_.judged == Judged::kReserved;
  for (int round = 0; round < kRounds; ++round) {
    const Candidate picked = capacities ? chooser_.choose_best(asked, effort(round, limits, asked))
                                        : chooser_.choose(policy, asked);
    scan(policy, limits, chosen);
    const Candidate candidate = chosen.fits ? chosen.candidate : picked;
    const std::string key = trials_.key(candidate);
    if (!judged.insert(key).second) break;
    Verdict verdict = judge(candidate, limits, true);
    std::optional<std::int64_t> next;
    if (capacities) {
      const bool same = trials_.key(picked) == key;
      next = next_budget(same ? verdict : judge(picked, limits, true), limits, asked);
    } else {
      // Compare the memory of the simulated steps with that of the whole training.
      const Cost tried = trials_.of(name(policy), {candidate}).front();
      const std::int64_t apart = tried.device_reserved_bytes - verdict.least_bytes;
      const bool ends = tried.fails || verdict.least_bytes == 0 || (verdict.fits && !chosen.fits);
      const bool close = round == 0 && std::abs(apart) * kCloseParts <= limits.budget_bytes;
      if (!ends && !close) next = limits.budget_bytes + apart;
    }
    if (!best || is_better(verdict, *best, limits)) {
      best = std::move(verdict);
      chosen.shown = candidate;
    }
    if (!next) break;
    asked.budget_bytes = *next;
  }
  if (capacities && !best->fits && best->least_bytes > 0) {
    if (auto less = needing_less(limits, best->least_bytes, true)) {
      if (is_better(less->second, *best, limits)) {
        chosen.shown = std::move(less->first);
        best = std::move(less->second);
      }
    }
  }
  const auto plain = chooser_.moving_nothing(policy);
  if (plain && best->least_bytes > 0) {
    Verdict unmoved = judge(*plain, limits, true);
    // Offload may leave more fragments than it saves memory.
    if (unmoved.fits >= best->fits &&
        unmoved.unlimited.device_reserved_bytes < best->unlimited.device_reserved_bytes) {
      best = std::move(unmoved);
      chosen.shown = *plain;
    }
  }
  return row(policy, chosen.shown, std::move(*best), limits, true);
}

PolicyRow Session::row(Policy policy, const Candidate& candidate, const Limits& limits,
                       bool stops) const {
  return row(policy, candidate, judge(candidate, limits, stops), limits, stops);
}

PolicyRow Session::row(Policy policy, const Candidate& candidate, Verdict verdict,
                       const Limits& limits, bool stops) const {
  StopsRun stop(request_.stop);
  Problem::How how{.whole = true,
                   .device_bytes = verdict.device_bytes(limits),
                   .check = request_.check,
                   .consumers = request_.consumers,
                   .trace = request_.trace,
                   .recorder = request_.recorder ? request_.recorder(policy) : nullptr,
                   .memory = request_.memory};
  if (stops && request_.stop) how.consumers.push_back(&stop);
  PolicyRow made = row_of(std::string(name(policy)), candidate, problem_.run(candidate, how),
                          how.device_bytes, std::move(verdict), keep_judged_bytes());
  made.alloc_conf = to_string(problem_.alloc_conf);
  return made;
}

// Judges the contenders, first those whose steps ran within the limits, and returns the first whose
// training fits. If none of the first few fits, returns the best candidate's row.
PolicyRow Session::best_by_then(const Limits& limits) const {
  std::vector<const Tried*> order = chooser_.contenders(Policy::kBest, limits);
  std::ranges::stable_partition(
      order, [&](const Tried* each) { return is_answer(each->within(limits), limits); });
  if (order.size() > kJudgedByThen) order.resize(kJudgedByThen);
  for (const Tried* each : order) {
    Verdict verdict = judge(each->candidate, limits, false);
    if (!verdict.fits) continue;
    return row(Policy::kBest, each->candidate, std::move(verdict), limits, false);
  }
  return row(Policy::kBest, trials_.best(limits)->candidate, limits, false);
}

std::vector<std::string> Session::segments() const {
  std::vector<std::string> names;
  for (const Code& code : problem_.program.codes) {
    for (const Statement& statement : code.statements) {
      const auto* call = std::get_if<Call>(&statement.action);
      if (!call || !is_segment(*call)) continue;
      names.push_back(problem_.program.codes[call->code].name);
    }
  }
  // If a segment runs more than once, or inside another, a statement's name is not a segment's.
  const std::size_t all = problem_.survey.segments.size();
  if (names.size() != all) names.assign(all, "");
  return names;
}

}  // namespace ferry::plan
