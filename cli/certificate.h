// Compares the best plan found with the lower bound, for the output of `ferry plan` and `--pareto`:
// no plan's step can be faster than it (docs/explanation/lower-bound.md). plan/lower_bound.h
// computes the bound.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "plan/planner.h"

namespace ferry::cli {

// Returns lines such as "mixed: 1.021 of keep; no plan is below 1.004: gap 1.7 %\n".
std::string certificate_text(const plan::PlanResult& result);

// Adds `lower_bound_ns` and `least_bytes`; a value that is not known is null.
void add_certificate(nlohmann::ordered_json& json, const plan::PlanResult& result);
// Returns how much longer the row's step takes than the bound, in thousandths of the bound, rounded
// up. Empty if no bound is known, if the row is no answer (PolicyRow::is_answer), or if a scheduler
// ran it for which the bound does not hold.
std::optional<std::int64_t> gap_permille(const plan::PlanResult& result,
                                         const plan::PolicyRow& row);
// Adds the row's `lower_bound_ns` and `gap`; null if the row has no gap.
void add_gap(nlohmann::ordered_json& entry, const plan::PlanResult& result,
             const plan::PolicyRow& row);

}  // namespace ferry::cli
