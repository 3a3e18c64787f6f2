// A verdict on a stream log for other programs: JSON of our own, and SARIF 2.1.0.
//
// An operation's name in a log may end in its place in the source, as recorders and `ferry run`
// write it: "copy at train.py:12 in fill", "mm at the backward of train.py:7 in step", "relu at
// net.py:7". The parts are told apart here, and nowhere else.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/check/trace_check.h"

namespace ferry::check {

struct Place {
  std::string operation;     // what is before " at "
  bool of_backward = false;  // of the operation that this line made in forward
  std::string file;          // "": the name has no place
  std::uint64_t line = 0;
  std::string function;  // "" if it is not said
};
Place place_of(std::string_view name);

// `operation` and `previous_operation` are null where there is no such operation.
nlohmann::ordered_json to_json(const TraceViolation& violation);
nlohmann::ordered_json to_json(const TraceReport& report);

// SARIF (OASIS, 2.1.0): a result for each violation, at the later operation's place, with the
// earlier one's as a related location. Where the source is not known, the place is the line of
// `log`; "" where nobody can open the log, and the result has no place then.
nlohmann::ordered_json to_sarif(const TraceReport& report, const std::string& log);

}  // namespace ferry::check
