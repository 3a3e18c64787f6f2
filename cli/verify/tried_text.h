// Writes and reads blocks of programs and their results as texts. Ranks send them to each other,
// and the file of a campaign stores them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "verify/campaign/ledger.h"

namespace ferry::cli {

// All functions that read throw nlohmann::json::exception for a text that was not written here.
nlohmann::json to_json(const verify::Coverage& coverage);
verify::Coverage coverage_from(const nlohmann::json& json);

std::string to_text(const verify::ProgramRange& block);
verify::ProgramRange block_from(std::string_view text);

// Leaves out the hazard of a failure, because a report finds it again.
std::string to_text(const verify::TriedBlock& tried);
verify::TriedBlock tried_from(std::string_view text);

}  // namespace ferry::cli
