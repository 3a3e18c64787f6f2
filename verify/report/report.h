// A report tells a failure on one screen: who touched what, which edge is missing, what would add
// it, and how to see it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

struct Report {
  RunSpec spec;
  std::optional<Verdict> verdict;      // none: no oracle objects
  std::int64_t operations = 0;         // on streams
  std::int64_t device_operations = 0;  // of these, what a device does
  bool confirmed = false;              // a race that a schedule shows
  std::string text;
};

// Makes the run and reports on it. Shrinking comes before (shrink_spec.h). `again`: the command
// that a replay line is given to.
Report explain(const RunSpec& spec, std::string_view again = "ferry verify --replay");

}  // namespace ferry::verify
