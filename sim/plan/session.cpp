#include "sim/plan/session.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "formats/modules.h"
#include "sim/plan/stop.h"

namespace ferry::plan {
namespace {

Problem problem_of(const Program& program, const Hardware& hardware, const PlanRequest& request) {
  Problem problem{.whole = program,
                  .program = with_segments(program, request.modules),
                  .hardware = hardware,
                  .training = request.training,
                  .survey = {},
                  .spans = request.spans,
                  .modules = request.modules || marks_calls(program),
                  .alloc_conf = request.alloc_conf,
                  .workspace_bytes = request.workspace_bytes,
                  .judged = request.judged,
                  .offload_all = request.offload_all};
  problem.survey = survey(problem.program, hardware);
  return problem;
}

// What a candidate's whole training needs is not what one step from a prepared state needs. The
// search is asked again so many times, for a budget that makes up for the difference.
constexpr int kRounds = 4;
constexpr std::int64_t kMoreParts = 24;    // so much more may be reserved, and given back
constexpr std::int64_t kCloseParts = 200;  // no search for a budget that is so much of it away
constexpr int kContenders = 256;           // are run whole in a round

// Of those that fit the fastest; of others the one that needs the least.
bool is_better(const Verdict& a, const Verdict& b) {
  const auto key = [](const Verdict& each) {
    return std::tuple(each.least_bytes == 0, !each.fits,
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

// The problem's, once it is known what the optimizer takes.
Cost cost_of_keep(Problem& problem, const sim::Simulation& keeps) {
  problem.optimizer_ns = keeps.optimizer_ns;
  return problem.cost({std::nullopt, keep_all(problem.survey)});
}

}  // namespace

Session::Session(const Program& program, const Hardware& hardware, const PlanRequest& request)
    : request_(request),
      problem_(problem_of(program, hardware, request)),
      keeps_(run_keep(problem_, request)),
      keep_(cost_of_keep(problem_, keeps_)),
      trace_(trace_training(problem_.program, hardware, problem_.training, keeps_.optimizer_ns)),
      floors_(problem_.program, hardware, trace_),
      trials_(problem_, floors_, request.progress, request.stop),
      chooser_(problem_, keep_, trace_, trials_) {}

Limits Session::limits(std::int64_t budget_bytes) const {
  return {budget_bytes, problem_.hardware.host_memory_bytes,
          keep_.fails ? kUnlimited : keep_.device_reserved_bytes};
}

std::optional<Certificate> Session::certificate(std::int64_t budget_bytes) const {
  return certify(problem_.program, problem_.hardware, trace_, budget_bytes);
}

Verdict Session::judge(const Candidate& candidate, const Limits& limits, bool stops) const {
  const auto run = [&](std::int64_t device_bytes) {
    if (stops) throw_if(request_.stop);
    return problem_.run(candidate, {.whole = true, .device_bytes = device_bytes});
  };
  return plan::judge(run, limits, problem_.judged);
}

// The contenders' trainings at the limits' capacity, the fastest step first, until none of those
// left can be faster.
void Session::scan(Policy policy, const Limits& limits, Chosen& chosen) {
  const bool allocated = problem_.judged == Judged::kAllocated;
  int runs = 0;
  for (const Tried* each : chooser_.contenders(policy, limits)) {
    if (chosen.fits && each->cost.step_ns >= chosen.step_ns) break;
    const auto [known, fresh] =
        ran_.try_emplace({limits.budget_bytes, trials_.key(each->candidate)});
    if (fresh) {
      if (++runs > kContenders) break;
      throw_if(request_.stop);
      const sim::Simulation run = problem_.run(
          each->candidate, {.whole = true, .device_bytes = allocated ? 0 : limits.budget_bytes});
      const std::int64_t bytes = cost_of(run, problem_.judged).device_reserved_bytes;
      if (run.errors.empty() && run.host_peak_bytes <= limits.host_bytes &&
          bytes <= std::min(limits.budget_bytes, keep_judged_bytes())) {
        known->second = run.step_ns;
      }
    }
    const std::optional<sim::Time>& step_ns = known->second;
    if (!step_ns || (chosen.fits && *step_ns >= chosen.step_ns)) continue;
    chosen.fits = true;
    chosen.step_ns = *step_ns;
    chosen.candidate = each->candidate;
  }
}

// What would reserve more than the capacity may run at it, and be faster than all that reserve
// less. So `best` is asked for larger budgets as well, while that helps.
void Session::ask_for_more(Policy policy, const Limits& limits, Chosen& chosen,
                           std::optional<Verdict>& best) {
  if (policy != Policy::kBest || problem_.judged != Judged::kReserved || !chosen.fits) return;
  const sim::Time first = chosen.step_ns;
  Limits asked = limits;
  for (int round = 0; round < kRounds && chosen.step_ns > keeps_.step_ns; ++round) {
    asked.budget_bytes += limits.budget_bytes / kMoreParts;
    chooser_.choose(policy, asked);
    const sim::Time before = chosen.step_ns;
    scan(policy, limits, chosen);
    if (chosen.step_ns >= before) break;
  }
  if (chosen.step_ns >= first) return;
  Verdict verdict = judge(chosen.candidate, limits, true);
  if (!is_better(verdict, *best)) return;
  best = std::move(verdict);
  chosen.shown = chosen.candidate;
}

PolicyRow Session::choose(Policy policy, const Limits& limits) {
  Limits asked = limits;
  Chosen chosen;
  std::optional<Verdict> best;
  std::set<std::string> judged;
  for (int round = 0; round < kRounds; ++round) {
    const Candidate picked = chooser_.choose(policy, asked);
    scan(policy, limits, chosen);
    const Candidate& candidate = chosen.fits ? chosen.candidate : picked;
    if (!judged.insert(trials_.key(candidate)).second) break;
    Verdict verdict = judge(candidate, limits, true);
    // What the search takes it to need, and what it needs.
    const Cost tried = trials_.of(name(policy), {candidate}).front();
    asked.budget_bytes = limits.budget_bytes + tried.device_reserved_bytes - verdict.least_bytes;
    const bool ends = tried.fails || verdict.least_bytes == 0 || (verdict.fits && !chosen.fits);
    if (!best || is_better(verdict, *best)) {
      best = std::move(verdict);
      chosen.shown = candidate;
    }
    const std::int64_t apart = std::abs(asked.budget_bytes - limits.budget_bytes);
    if (ends || (round == 0 && apart * kCloseParts <= limits.budget_bytes)) break;
  }
  ask_for_more(policy, limits, chosen, best);
  const auto plain = chooser_.moving_nothing(policy);
  if (plain && best->least_bytes > 0) {
    Verdict unmoved = judge(*plain, limits, true);
    // What is moved, and where, may leave more fragments than it saves.
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
  return row_of(std::string(name(policy)), candidate, problem_.run(candidate, how),
                how.device_bytes, std::move(verdict), keep_judged_bytes());
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
  // If one runs more than once, or inside another, names by statement are useless.
  const std::size_t all = problem_.survey.segments.size();
  if (names.size() != all) names.assign(all, "");
  return names;
}

}  // namespace ferry::plan
