// Blocks and what came of them as texts: ranks send them each other, and a campaign's file keeps
// them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "verify/campaign/ledger.h"

namespace ferry::cli {

// Throws nlohmann::json::exception, here and below, for what to_text did not write.
nlohmann::json to_json(const verify::Coverage& coverage);
verify::Coverage coverage_from(const nlohmann::json& json);

std::string to_text(const verify::ProgramRange& block);
verify::ProgramRange block_from(std::string_view text);

// Of a failure, all but the hazard, which a report finds again.
std::string to_text(const verify::TriedBlock& tried);
verify::TriedBlock tried_from(std::string_view text);

}  // namespace ferry::cli
