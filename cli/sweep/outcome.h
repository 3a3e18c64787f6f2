// The outcome of an item: the second half of its line in the results.
//
// An item is a `ferry plan` of one policy in a child process, whose JSON has the figures. An item
// without figures has a cause. All lines have the same keys, so that they make a table.
#pragma once

#include <string>
#include <string_view>

#include "cli/sweep/children.h"

namespace ferry::cli {

inline constexpr std::string_view kFits = "fits";
inline constexpr std::string_view kFitsNot = "does not fit";  // or needs more than `keep`
inline constexpr std::string_view kViolates = "violated";     // a hazard, or a step with an error
inline constexpr std::string_view kRefused = "refused";  // bad input: a policy without segments
inline constexpr std::string_view kFailed = "failed";    // beyond limits, out of memory, a fault
inline constexpr std::string_view kCrashed = "crashed";
inline constexpr std::string_view kLate = "late";  // beyond the time limit

// True for outcomes that may be different if the item runs again.
constexpr bool is_no_answer(std::string_view outcome) {
  return outcome == kFailed || outcome == kCrashed || outcome == kLate;
}

// Returns a JSON object without its braces: "outcome", "cause" and the figures. A missing value is
// null.
std::string outcome_of(const ChildEnd& end);

}  // namespace ferry::cli
