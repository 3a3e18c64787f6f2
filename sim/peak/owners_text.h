// The owners of a stream log's peak (log_peak.h) as a table with bars and as JSON. `ferry run`
// prints the short table at its end, `ferry explain` the long one.
//
// A line has the operator that made the blocks and its place in the program, as the log names them.
// Blocks that no operation in the log wrote to are mostly workspaces of libraries.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/peak/log_peak.h"

namespace ferry::peak {

// Both return a line of titles and at most this number of lines. `peak` has at least one owner. The
// second adds up the lines of each function, such as forward of a class of modules, and what
// backward of these lines made; it is empty if the log has no places.
std::string owners_text(const LogPeak& peak, std::size_t lines_most);
std::string functions_text(const LogPeak& peak, std::size_t lines_most);

nlohmann::ordered_json to_json(const LogPeak& peak);

}  // namespace ferry::peak
