// The lower bound on the step time of every plan, beside the best plan found: how good that is.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "plan/planner.h"

namespace ferry::cli {

// "mixed: 1.021 of keep; no plan is below 1.004: gap 1.7 %\n"
std::string certificate_text(const plan::PlanResult& result);

// `lower_bound_ns` and `least_bytes`; null: nothing is known.
void add_certificate(nlohmann::ordered_json& json, const plan::PlanResult& result);
// How much longer the row's step takes than the bound, in thousandths of that, rounded up. None
// where it does not fit, or another scheduler ran it.
std::optional<std::int64_t> gap_permille(const plan::PlanResult& result,
                                         const plan::PolicyRow& row);
// A row's `lower_bound_ns` and `gap`; null where there is none.
void add_gap(nlohmann::ordered_json& entry, const plan::PlanResult& result,
             const plan::PolicyRow& row);

}  // namespace ferry::cli
