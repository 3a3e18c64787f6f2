// What is counted begins at 0 and adds up; what is numbered has a number of its own.
#pragma once

#include <functional>
#include <optional>

#include "shared/seam/statistics.h"
#include "verify/oracles/verdict.h"

namespace ferry::verify {

// `add`: how the counts of two offloaders become one.
using Add = std::function<OffloadStatistics(OffloadStatistics, const OffloadStatistics&)>;
std::optional<Verdict> judge_counting(const Add& add = [](OffloadStatistics sum,
                                                          const OffloadStatistics& other) {
  return sum += other;
});

}  // namespace ferry::verify
