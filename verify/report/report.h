// A report describes a failure on one screen: the two accesses, the edge that is missing between
// them, what would add it, and how to repeat the run. `ferry verify` and hunts print it.
//
// Only races have accesses and edges. For other failures the report has the words of the oracle.
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
  std::int64_t operations = 0;         // on all streams
  std::int64_t device_operations = 0;  // those that a device executes
  bool confirmed = false;              // the failure is a race, and an order of the device shows it
  std::string text;
};

// Makes the run and reports on it. It does not shrink the run (shrink_spec.h). `again` is the
// command that the report prints before the replay line.
Report explain(const RunSpec& spec, std::string_view again = "ferry verify --replay");

}  // namespace ferry::verify
