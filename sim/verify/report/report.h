// What a failure is told as: on one screen, who touched what, the edge that is missing, what would
// add it, and how to see it again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/verify/campaign/attempt.h"

namespace ferry::verify {

struct Report {
  Attempt attempt;                     // shrunk
  std::optional<Verdict> verdict;      // none: no oracle objects
  std::int64_t operations = 0;         // on streams
  std::int64_t device_operations = 0;  // of these, kernels and copies
  bool confirmed = false;              // a schedule shows another value; races alone
  std::string text;
};

// Of an attempt as it is.
Report explain(const Attempt& attempt);

}  // namespace ferry::verify
