// What is wrong with a stream log, and an order of the device that shows it: the two of a hazard
// file (formats/HAZARD.md).
#pragma once

#include <string>
#include <vector>

#include "formats/hazard_file.h"

namespace ferry::explore {

struct LogVerdict {
  std::vector<HazardVerdict> verdicts;  // as `ferry check` lists them
  // Where the first of them is a race that a schedule shows: that, and what is seen in it.
  std::string schedule;
  std::string seen;
};

// Judges the log, whatever the header says.
LogVerdict judge_log(const HazardFile& hazard);

// What the header's schedule shows; empty: no other value than the order of issue. Throws
// std::invalid_argument where the log's device cannot run in that order.
std::string seen_in(const HazardFile& hazard);

}  // namespace ferry::explore
