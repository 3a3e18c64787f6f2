// A range of NVTX in the domain "ferry", named for a step of the core: what a profiler (Nsight
// Systems) shows above the calls that the step made. Where no tool listens it costs a load and a
// test.
//
// Source: the NVTX 3 reference; domains, registered strings and ranges of a thread, which nest.
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
