// The answer at the end of `ferry plan`, and the table of peak memory by kind.
//
// The answer names the policy to use, what it costs, why nothing faster fits, and what would make
// it faster. If nothing fits, it says what the smallest plan's memory consists of and what would
// help (cli/nothing_fits.h).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/policies.h"
#include "plan/planner.h"

namespace ferry::cli {

// Returns a line for each row that ran: its peak memory by kind.
std::string kinds_table(const plan::PlanResult& result);
// Returns {"parameters": bytes, …}. The values add up to the row's device_peak_bytes.
nlohmann::ordered_json kinds_json(const sim::KindBytes& kinds);

// Formats 1218 as "1.218".
std::string thousandths(std::int64_t of);

// Returns the time in a step when the GPU neither computes nor waits for copies: the host had not
// issued the next kernel, or was waiting itself.
sim::Time idle_for_host_ns(const sim::Simulation& run);

// Returns a few sentences without a final line end. Empty if the search was stopped or no row ran.
// It plans other trainings, to say what would help: it may take as long as the plan did.
std::string answer(const PolicyArguments& arguments, const PolicyRequest& request,
                   const plan::PlanResult& result);

}  // namespace ferry::cli
