// A random step that a scheduler is tried on, for tests of one's own.
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
  Recipe recipe;                            // says no more than what the scheduler is given of it
  std::shared_ptr<const SegmentPlan> plan;  // null: checkpoints are as the program says
};
// In words, on one line.
std::ostream& operator<<(std::ostream& out, const HuntedStep& step);

// A recipe and a plan; the options are none's.
Trial draw_step(std::uint64_t seed, Sizes sizes = Sizes::kMixed);
// Takes out what the scheduler was not made for. Throws std::invalid_argument for one with programs
// of its own.
HuntedStep step_of(const HuntedScheduler& scheduler, Trial trial);

Program program_of(const HuntedScheduler& scheduler, const HuntedStep& step);
// Returns the verdict of the first oracle that objects, with the usual answers to all that CUDA and
// PyTorch leave open.
std::optional<Verdict> judge(const HuntedScheduler& scheduler, const HuntedStep& step);

}  // namespace ferry::verify
