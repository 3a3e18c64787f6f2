#include "plan/pareto.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "plan/session.h"
#include "plan/stop.h"

namespace ferry::plan {
namespace {

// A budget is not searched if a known plan is within 1/kNearParts of the bound. Larger: more
// budgets are searched.
constexpr sim::Time kNearParts = 250;
// The effort for one budget of the curve: less than for a budget that is planned alone.
constexpr Chooser::Effort kSome = {
    .spans = {.ways = 6, .noise = 16, .least_won = 200}, .known = false, .climbs = false};

// Returns `count` equally spaced budgets.
std::vector<std::int64_t> budgets_between(std::int64_t least, std::int64_t most,
                                          std::size_t count) {
  std::vector<std::int64_t> budgets;
  const auto steps = static_cast<std::int64_t>(count > 1 ? count - 1 : 1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const std::int64_t budget = least + (most - least) / steps * i;
    budgets.push_back(i == steps ? most : budget);
  }
  return budgets;
}

// True if a known plan is so near the budget's bound that a search could gain hardly anything.
bool is_near(const Session& session, std::int64_t budget) {
  const std::optional<Cost> known = session.trials().fitting(session.limits(budget));
  const std::optional<Certificate> bound = session.certificate(budget);
  if (!known || !bound || !bound->step_ns) return false;
  return known->step_ns - *bound->step_ns <= *bound->step_ns / kNearParts;
}

struct Finalist {
  Candidate candidate;
  Verdict verdict;
};

void sort_by_time(std::vector<Finalist>& all) {
  std::ranges::stable_sort(all, std::less<>(),
                           [](const Finalist& each) { return each.verdict.step_ns; });
}

// Simulates the whole training of the best plan of each budget, without duplicates. Returns those
// that run, by time.
std::vector<Finalist> finalists(const Session& session, const std::vector<std::int64_t>& budgets) {
  std::vector<Finalist> all;
  std::set<const Tried*> seen;
  for (const std::int64_t budget : budgets) {
    const Limits limits = session.limits(budget);
    const Tried* best = session.trials().best(limits);
    if (!session.trials().fitting(limits) || !seen.insert(best).second) continue;
    Verdict verdict = session.judge(best->candidate, session.limits(kUnlimited), false);
    if (verdict.fits) all.push_back({best->candidate, std::move(verdict)});
  }
  sort_by_time(all);
  return all;
}

// Returns the fastest that runs in the budget, or null. `all` is sorted by step time with unlimited
// memory. Freeing the allocator's cache takes time, so a step at the budget is never shorter.
const Finalist* fastest(const Session& session, const std::vector<Finalist>& all,
                        std::int64_t budget) {
  const Finalist* best = nullptr;
  sim::Time best_ns = 0;
  for (const Finalist& each : all) {
    if (best && each.verdict.step_ns >= best_ns) break;
    if (each.verdict.needs_more_than(budget)) continue;
    const bool gives_back = each.verdict.judged_bytes > budget;
    const std::optional<sim::Time> step_ns =
        gives_back ? session.step_at(each.candidate, budget) : each.verdict.step_ns;
    if (!step_ns || (best && *step_ns >= best_ns)) continue;
    best = &each;
    best_ns = *step_ns;
  }
  return best;
}

// Makes the row of each budget: the fastest plan that runs in it, or the row of the smaller budget
// if that is faster. Such a row keeps the smaller budget's capacity: with more memory, the
// allocator may place its blocks so that memory runs out.
std::vector<ParetoPoint> points(const Session& session, const std::vector<Finalist>& all,
                                const std::vector<std::int64_t>& budgets) {
  std::vector<ParetoPoint> found;
  for (const std::int64_t budget : budgets) {
    std::optional<PolicyRow> row;
    if (const Finalist* best = fastest(session, all, budget)) {
      const Limits limits = session.limits(budget);
      row = session.row(Policy::kBest, best->candidate,
                        session.judge_at(best->candidate, best->verdict, limits), limits, false);
    }
    const PolicyRow* before = found.empty() ? nullptr : &found.back().row;
    const bool here = row && row->fits;
    if (before && (!here || before->simulation.step_ns < row->simulation.step_ns)) row = *before;
    if (row && row->fits) {
      found.push_back({budget, *std::move(row), session.certificate(budget)});
    }
  }
  return found;
}

std::int64_t least_of(const std::vector<Finalist>& all) {
  std::int64_t least = kUnlimited;
  for (const Finalist& each : all) least = std::min(least, each.verdict.least_bytes);
  return least;
}

}  // namespace

ParetoResult pareto(const Program& program, const Hardware& hardware, const PlanRequest& request,
                    std::size_t count) {
  ParetoResult result;
  std::optional<Session> session;
  std::vector<std::int64_t> budgets;
  std::optional<Finalist> least;
  try {
    session.emplace(program, hardware, request);
    if (session->keep().fails) {
      throw std::invalid_argument("the step fails even if everything is kept");
    }
    // No plan fits in one byte, so `best` looks for the least memory.
    const Candidate found =
        session->chooser().choose_best(session->limits(1), {.spans = {.noise = 4}});
    least = Finalist{found, session->judge(found, session->limits(kUnlimited), true)};
    const std::int64_t from = least->verdict.least_bytes;
    if (from > 0) budgets = budgets_between(from, session->keep().device_reserved_bytes, count);
    // Budgets that are close share what they find.
    for (const std::int64_t budget : budgets) {
      if (!is_near(*session, budget)) {
        session->chooser().choose_best(session->limits(budget), kSome);
      }
    }
  } catch (const Stopped&) {
    result.stopped = true;
    if (!session) return result;
    if (budgets.empty()) budgets = {kUnlimited};
  }
  result.keep_ns = session->keeps().step_ns;
  result.keep_bytes = session->keeps().device_reserved_bytes;
  result.segments = session->segments();
  result.survey = session->survey();
  std::vector<Finalist> all = finalists(*session, budgets);
  if (least && least->verdict.fits) {
    all.push_back(*std::move(least));
    sort_by_time(all);
  }
  if (all.empty()) return result;
  if (auto less = session->needing_less(session->limits(kUnlimited), least_of(all), false)) {
    all.push_back({std::move(less->first), std::move(less->second)});
    sort_by_time(all);
  }
  result.floor_bytes = least_of(all);
  result.points =
      points(*session, all, budgets_between(result.floor_bytes, result.keep_bytes, count));
  return result;
}

}  // namespace ferry::plan
