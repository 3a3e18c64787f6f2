// What one test of the core is: a random step, the offloader's options, and what a planner says of
// the step's segments. A trial depends on a seed and its number alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>

#include "shared/seam/checkpoint_options.h"
#include "shared/seam/options.h"
#include "sim/verify/programs/recipe.h"

namespace ferry::verify {

struct Trial {
  Recipe recipe;
  CoreOptions options;
  std::shared_ptr<const SegmentPlan> plan;  // of its segments; none: they are as the program says
};

CoreOptions draw_options(Draws& draws);
// Need not fit any program. Null: none.
std::shared_ptr<const SegmentPlan> draw_plan(Draws& draws);
Trial draw_trial(Draws& draws, Sizes sizes = Sizes::kMixed);

// On one line.
std::ostream& operator<<(std::ostream& out, const Trial& trial);

}  // namespace ferry::verify
