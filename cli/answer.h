// What `ferry plan` says in the end: what to use, what it costs, and why nothing faster fits; where
// nothing fits, what the least memory is made of and what would help. And of each row, what is in
// memory at its peak, by kind.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// A line for each row: the least capacity that it runs at, and its peak by kind.
std::string kinds_table(const plan::PlanResult& result);
// {"parameters": bytes, …}: they add up to the row's device_peak_bytes.
nlohmann::ordered_json kinds_json(const sim::KindBytes& kinds);

// "1.218" of 1218.
std::string thousandths(std::int64_t of);

// Of a step: neither computing nor waiting for copies. The host had not issued the next kernel, or
// waited itself.
sim::Time idle_for_host_ns(const sim::Simulation& run);

// One sentence or a few, without a line's end; empty: the search was stopped, or a row failed.
std::string answer(const PolicyRequest& request, const plan::PlanResult& result);

}  // namespace ferry::cli
