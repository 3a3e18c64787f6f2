// Says in words which operators made the peak of memory in a stream log (sim/peak/log_peak.h), as a
// table with bars or as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/peak/log_peak.h"

namespace ferry::cli {

// `peak` has at least one owner.
std::string to_text(const std::string& file, const peak::LogPeak& peak);
nlohmann::ordered_json to_json(const peak::LogPeak& peak);

}  // namespace ferry::cli
