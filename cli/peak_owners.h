// The table of `ferry plan` and `ferry simulate` that says which modules of the model own the peak
// of one row's memory, and for what.
//
// A run is recorded while it is simulated (sim/gpu/run_recorder.h), so the recorders are attached
// to the request before. Memory belongs to the innermost module around the operator that made it,
// or to the operator if there is no module, as for a loss.
// Modules whose names differ only in numbers, such as the layers of a transformer, are one line.
#pragma once

#include <cstddef>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/policies.h"
#include "plan/planner.h"
#include "sim/gpu/run_recorder.h"

namespace ferry::cli {

// Records the final run of each row of a request, until request.plan.recorder is set again.
class PeakRecorders {
 public:
  // The request must not be used after this object is gone.
  explicit PeakRecorders(PolicyRequest& request);
  PeakRecorders(const PeakRecorders&) = delete;
  PeakRecorders& operator=(const PeakRecorders&) = delete;

  // Returns the record of a row by its index. There is one for each row of the result.
  const sim::RunRecord& record(std::size_t row) const { return recorders_.at(row).record(); }

 private:
  std::deque<sim::RunRecorder> recorders_;  // one for each row, in the same order
};

// Both describe the row that plan::best_row names. Return "" and null if there is no such row, or
// if the program has no modules.
std::string peak_owners_text(const PolicyRequest& request, const plan::PlanResult& result);
nlohmann::ordered_json peak_owners_json(const PolicyRequest& request,
                                        const plan::PlanResult& result);

}  // namespace ferry::cli
