// Checks errors for saved tensors that were written in place. The model says, for the whole run,
// which calls of main must end in this error, with which versions and after how many other unpacks,
// and that no other call does.
//
// It works from the program and its plan, with a run that recomputes nothing (model_run.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/program/tape.h"

namespace ferry::verify {

// Returns the errors of a run that has no others. `spans` and `plan` are as in ModelRun.
std::vector<sim::ProgramError> expected_errors(
    const Program& program, const std::vector<PlanSpan>& spans, const SegmentPlan* plan,
    std::shared_ptr<const sim::Prepared> prepared = nullptr);

// Describes the first error that is not as expected; empty if there is none.
std::string misrefused(const std::vector<sim::ProgramError>& expected,
                       const std::vector<sim::ProgramError>& found);

}  // namespace ferry::verify
