// The curve of time against memory (`--pareto`): the fastest plan of `best` for each of many
// budgets, from the least memory that any known plan needs up to what keeping everything reserves.
//
// All budgets share one store of trials: a plan found for a smaller budget is a candidate for every
// larger one. So the step time never rises with memory, and all budgets together cost a few times
// as much as one. Each budget is searched less than if it were planned alone.
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
  std::vector<ParetoPoint> points;  // by ascending budget
  bool stopped = false;             // the search was stopped; the points are the best until then
  sim::Time keep_ns = 0;
  std::int64_t keep_bytes = 0;
  std::int64_t floor_bytes = 0;  // the smallest budget for which a plan was found
  Survey survey;
  std::vector<std::string> segments;  // the segments' names
};

// Plans `budgets` budgets. The request's own budget and policies are ignored. Throws
// std::invalid_argument if the step fails even if everything is kept.
ParetoResult pareto(const Program& program, const Hardware& hardware, const PlanRequest& request,
                    std::size_t budgets);

}  // namespace ferry::plan
