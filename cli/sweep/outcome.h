// What became of an item: the results' half of its line.
//
// An item is a `ferry plan` of one policy in a child process, whose JSON has the figures. One that
// has none tells its cause. The keys are the same for all, so that the lines make a table.
#pragma once

#include <string>
#include <string_view>

#include "cli/sweep/children.h"

namespace ferry::cli {

inline constexpr std::string_view kFits = "fits";
inline constexpr std::string_view kFitsNot = "does not fit";  // or needs more than keeping all
inline constexpr std::string_view kViolates = "violated";     // a hazard, or a step with an error
inline constexpr std::string_view kRefused = "refused";  // bad input: a policy without segments
inline constexpr std::string_view kFailed = "failed";    // beyond limits, out of memory, a fault
inline constexpr std::string_view kCrashed = "crashed";
inline constexpr std::string_view kLate = "late";  // beyond the time limit

// Those that another time may end otherwise.
constexpr bool is_no_answer(std::string_view outcome) {
  return outcome == kFailed || outcome == kCrashed || outcome == kLate;
}

// A JSON object without its braces: "outcome", "cause", and the figures, null where there are none.
std::string outcome_of(const ChildEnd& end);

}  // namespace ferry::cli
