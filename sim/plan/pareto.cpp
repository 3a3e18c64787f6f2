#include "sim/plan/pareto.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "sim/plan/session.h"
#include "sim/plan/stop.h"

namespace ferry::plan {
namespace {

// Budgets that are close share what they find.
constexpr std::size_t kEvery = 16;

// Equally far apart.
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

// What to search for: from the least that a step was found to reserve to what keep's does.
std::vector<std::int64_t> searched_budgets(const Session& session, std::size_t count) {
  const Tried* found = session.trials().best(session.limits(0));
  if (!found || found->cost.fails) return {};
  return budgets_between(found->cost.device_reserved_bytes, session.keep().device_reserved_bytes,
                         count);
}

struct Finalist {
  Candidate candidate;
  Verdict verdict;
};

// The whole trainings of what was found for these budgets, each once; those that run.
std::vector<Finalist> finalists(const Session& session, const std::vector<std::int64_t>& budgets) {
  std::vector<Finalist> all;
  std::set<const Tried*> seen;
  for (const std::int64_t budget : budgets) {
    const Limits limits = session.limits(budget);
    const Tried* best = session.trials().best(limits);
    if (!best || best->cost.fails || !fits(best->cost, limits) || !seen.insert(best).second) {
      continue;
    }
    Verdict verdict = session.judge(best->candidate, session.limits(kUnlimited), false);
    if (verdict.fits) all.push_back({best->candidate, std::move(verdict)});
  }
  return all;
}

// For each budget the fastest that runs in it; a plan that runs in less runs in more, as fast.
std::vector<ParetoPoint> points(const Session& session, const std::vector<Finalist>& all,
                                const std::vector<std::int64_t>& budgets) {
  std::vector<ParetoPoint> found;
  for (const std::int64_t budget : budgets) {
    const Finalist* best = nullptr;
    for (const Finalist& each : all) {
      const bool runs = each.verdict.least_bytes <= budget;
      if (runs && (!best || each.verdict.step_ns < best->verdict.step_ns)) best = &each;
    }
    if (!best) continue;
    ParetoPoint point{budget,
                      session.row(Policy::kBest, best->candidate, session.limits(budget), false),
                      session.certificate(budget)};
    const PolicyRow* before = found.empty() ? nullptr : &found.back().row;
    if (before && (!point.row.fits || before->simulation.step_ns < point.row.simulation.step_ns)) {
      point.row = *before;
    }
    if (point.row.fits) found.push_back(std::move(point));
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
  try {
    session.emplace(program, hardware, request);
    if (session->keep().fails) {
      throw std::invalid_argument("its step fails where everything is kept");
    }
    // No plan fits in nothing: what needs the least memory is found.
    session->chooser().choose_best(session->limits(0), kEvery);
    budgets = searched_budgets(*session, count);
    for (const std::int64_t budget : budgets) {
      session->chooser().choose_best(session->limits(budget), kEvery);
    }
  } catch (const Stopped&) {
    result.stopped = true;
    if (!session) return result;
    if (budgets.empty()) budgets = searched_budgets(*session, count);
  }
  result.keep_ns = session->keeps().step_ns;
  result.keep_bytes = session->keeps().device_reserved_bytes;
  result.segments = session->segments();
  result.survey = session->survey();
  const std::vector<Finalist> all = finalists(*session, budgets);
  if (all.empty()) return result;
  result.floor_bytes = least_of(all);
  result.points =
      points(*session, all, budgets_between(result.floor_bytes, result.keep_bytes, count));
  return result;
}

}  // namespace ferry::plan
