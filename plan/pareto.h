// The curve of time against memory: the fastest plan of `best` for each of many budgets, from the
// least memory that any plan was found to need up to what keeping everything reserves.
//
// The budgets share one set of trials: a plan that was found for a smaller one is a candidate at
// each larger one, so the curve never rises with memory, and all budgets together cost a few times
// what one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/planner.h"

namespace ferry::plan {

struct ParetoPoint {
  std::int64_t budget_bytes = 0;
  PolicyRow row;
  std::optional<Certificate> certificate;
};

struct ParetoResult {
  std::vector<ParetoPoint> points;  // by budget, from the least
  bool stopped = false;             // the search was; the points are the best by then
  sim::Time keep_ns = 0;
  std::int64_t keep_bytes = 0;
  std::int64_t floor_bytes = 0;  // the least budget that a plan was found for
  Survey survey;
  std::vector<std::string> segments;  // the segments' names
};

// The request's budget and policies do not count. Throws std::invalid_argument if the step fails
// where everything is kept.
ParetoResult pareto(const Program& program, const Hardware& hardware, const PlanRequest& request,
                    std::size_t budgets);

}  // namespace ferry::plan
