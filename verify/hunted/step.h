// Random steps for tests of a user's scheduler, one at a time. (A hunt tries many, see hunt.h.) A
// step has only what the scheduler supports.
// ferry/verify_rapidcheck.h makes RapidCheck generators of steps.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>

#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "verify/hunted/hunted.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/trial.h"

namespace ferry::verify {

struct HuntedStep {
  Recipe recipe;                            // without the parts that the scheduler does not support
  std::shared_ptr<const SegmentPlan> plan;  // null: the program says which checkpoints there are
};
// Describes the step in words, on one line.
std::ostream& operator<<(std::ostream& out, const HuntedStep& step);

// Makes a trial with a random recipe and plan, and default options.
Trial draw_step(std::uint64_t seed, Sizes sizes = Sizes::kMixed);
// Removes what the scheduler does not support. Throws std::invalid_argument if the scheduler has
// its own programs.
HuntedStep step_of(const HuntedScheduler& scheduler, Trial trial);

Program program_of(const HuntedScheduler& scheduler, const HuntedStep& step);
// Runs the scheduler on the step, with the usual answers to all that CUDA and PyTorch leave open.
// Returns the verdict of the first oracle that objects, or nothing.
std::optional<Verdict> judge(const HuntedScheduler& scheduler, const HuntedStep& step);

}  // namespace ferry::verify
