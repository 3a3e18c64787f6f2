// Checks the errors for saved tensors that were written in place. A run that keeps everything
// cannot be the reference, because recomputing changes which writes matter: a written input of a
// checkpoint must be an error, a written tensor that it recomputes must not be one.
//
// expected_errors lists the errors that a program with its plan must give. It gets them from a
// model (model_run.h), whose limits apply. try_core.h compares them with the errors of the core.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/program/tape.h"

namespace ferry::verify {

// Returns the errors in the order in which they occur, with the versions in their messages. The
// program must have no other errors. `spans` and `plan` are as in ModelRun.
std::vector<sim::ProgramError> expected_errors(
    const Program& program, const std::vector<PlanSpan>& spans, const SegmentPlan* plan,
    std::shared_ptr<const sim::Prepared> prepared = nullptr);

// Compares two lists in order, by message and by the number of saved tensors unpacked before the
// error, and not by line number. Describes the first difference; empty if there is none.
std::string misrefused(const std::vector<sim::ProgramError>& expected,
                       const std::vector<sim::ProgramError>& found);

}  // namespace ferry::verify
