// Computes the parts of a hazard file (formats/HAZARD.md): what is wrong with a stream log, and an
// order of the device that shows it. ferry verify writes hazard files with it
// (verify/report/hazard_of.h), and tests compare the shipped files with what it says today.
#pragma once

#include <string>
#include <vector>

#include "formats/hazard_file.h"

namespace ferry::explore {

struct LogVerdict {
  std::vector<HazardVerdict> verdicts;  // as `ferry check` lists them
  // If the first verdict is a race that a schedule shows: this schedule, and what goes wrong in it.
  // Otherwise empty.
  std::string schedule;
  std::string seen;
};

// Judges the log. The header's verdicts are not used.
LogVerdict judge_log(const HazardFile& hazard);

// Returns what goes wrong in the header's schedule; empty if every value is as in issue order.
// Throws std::invalid_argument if the log's device cannot run in that order.
std::string seen_in(const HazardFile& hazard);

}  // namespace ferry::explore
