// The table of `ferry plan` for several cards: what to use on each, what it needs, how fast it is,
// and what a million tokens (or samples, if the program has none) cost.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// A card, and the plan of the training on it.
struct PlannedCard {
  PolicyRequest request;
  plan::PlanResult result;
  std::int64_t cost_per_hour = 0;  // in thousandths; 0: not known
};

bool fits(const PlannedCard& card);
// All cards have the same program. Ends with sentences that name the fastest and the cheapest.
std::string cards_table(const std::vector<PlannedCard>& cards);
nlohmann::ordered_json cards_json(const std::vector<PlannedCard>& cards);

}  // namespace ferry::cli
