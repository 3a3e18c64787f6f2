// A tensor that was written in place since it was saved is refused when it is needed, and only
// then. Says so of a whole run: which calls of main must end in that error, with which versions,
// and after how many other saved tensors; and that no other call does.
//
// It is told from the program and its plan, by a run in which nothing runs again (model_run.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/program/tape.h"

namespace ferry::verify {

// The errors of a run that has no others. `spans`, `plan`: as of ModelRun.
std::vector<sim::ProgramError> expected_errors(
    const Program& program, const std::vector<PlanSpan>& spans, const SegmentPlan* plan,
    std::shared_ptr<const sim::Prepared> prepared = nullptr);

// The first of the errors that is not as expected; empty: there is none.
std::string misrefused(const std::vector<sim::ProgramError>& expected,
                       const std::vector<sim::ProgramError>& found);

}  // namespace ferry::verify
