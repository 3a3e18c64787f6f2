#include "sim/plan/pareto.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "sim/plan/session.h"
#include "sim/plan/stop.h"

namespace ferry::plan {
namespace {

// Budgets that are close share what they find.
constexpr std::size_t kEvery = 16;

// Equally far apart, from the least that a plan was found for.
std::vector<std::int64_t> budgets_of(const Session& session, std::size_t count) {
  const Tried* found = session.trials().best(session.limits(0));
  if (!found || found->cost.fails) return {};
  const std::int64_t least = found->cost.device_reserved_bytes;
  const std::int64_t most = session.keep().device_reserved_bytes;
  std::vector<std::int64_t> budgets;
  const auto steps = static_cast<std::int64_t>(count > 1 ? count - 1 : 1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const std::int64_t budget = least + (most - least) / steps * i;
    budgets.push_back(i == steps ? most : budget);
  }
  return budgets;
}

// The points of the budgets that some plan fits, each the fastest of all that was tried. Plans that
// several share are run once.
std::vector<ParetoPoint> points(const Session& session, const std::vector<std::int64_t>& budgets) {
  std::vector<ParetoPoint> found;
  std::map<const Tried*, PolicyRow> rows;
  for (const std::int64_t budget : budgets) {
    const Limits limits = session.limits(budget);
    const Tried* best = session.trials().best(limits);
    if (!best || best->cost.fails || !fits(best->cost, limits)) continue;
    auto row = rows.find(best);
    if (row == rows.end()) {
      row = rows.emplace(best, session.row(Policy::kBest, best->candidate, limits, false)).first;
    }
    found.push_back({budget, row->second, session.certificate(budget)});
  }
  return found;
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
    budgets = budgets_of(*session, count);
    for (const std::int64_t budget : budgets) {
      session->chooser().choose_best(session->limits(budget), kEvery);
    }
  } catch (const Stopped&) {
    result.stopped = true;
    if (!session) return result;
    if (budgets.empty()) budgets = budgets_of(*session, count);
  }
  if (!budgets.empty()) result.floor_bytes = budgets.front();
  result.keep_ns = session->keep().step_ns;
  result.keep_bytes = session->keep().device_reserved_bytes;
  result.segments = session->segments();
  result.survey = session->survey();
  result.points = points(*session, budgets);
  return result;
}

}  // namespace ferry::plan
