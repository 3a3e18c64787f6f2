// An NVTX range in the domain "ferry", with the name of a step of the core. A profiler such as
// Nsight Systems shows it above the calls of the step. Without a tool it costs a load and a test.
//
// Source: the NVTX 3 reference; domains, registered strings and thread ranges, which nest.
#pragma once

#include "shared/seam/step.h"

namespace ferry::real {

class StepRange {
 public:
  explicit StepRange(Step step);
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;
  ~StepRange();
};

}  // namespace ferry::real
