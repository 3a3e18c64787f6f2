// Writes a verdict on a stream log for other programs, for `ferry check` and `ferry run`: as
// Ferry's own JSON, and as SARIF 2.1.0.
//
// The name of an operation in a log may end with its place in the source. Recorders and `ferry run`
// write "copy at train.py:12 in fill", "mm at the backward of train.py:7 in step" or "relu at
// net.py:7". Only place_of() parses such names.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/check/log_check.h"

namespace ferry::check {

// The parts of the name of an operation.
struct Place {
  std::string operation;     // the text before " at "
  bool of_backward = false;  // the backward of an operation that this line ran in forward
  std::string file;          // "": the name has no place
  std::uint64_t line = 0;
  std::string function;  // "": the name does not say it
};
Place place_of(std::string_view name);

// `previous_operation` is null if there is no such operation.
nlohmann::ordered_json to_json(const LogViolation& violation);
nlohmann::ordered_json to_json(const LogReport& report);

// SARIF (OASIS, 2.1.0) with one result for each violation, at the place of the later operation. The
// earlier operation is a related location. If the source is not known, the place is a line of
// `log`. If nobody can open the log, `log` is "", and such a result has no place.
nlohmann::ordered_json to_sarif(const LogReport& report, const std::string& log);

}  // namespace ferry::check
