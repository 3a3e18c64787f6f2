#include "verify/hunted/step.h"

#include <ostream>
#include <stdexcept>
#include <utility>

#include "sim/choices/draws.h"
#include "verify/hunted/try_scheduler.h"

namespace ferry::verify {

std::ostream& operator<<(std::ostream& out, const HuntedStep& step) {
  out << text_of(step.recipe);
  if (step.plan && step.recipe.segments) out << "; with a plan of its segments";
  return out;
}

Trial draw_step(std::uint64_t seed, Sizes sizes) {
  choices::Draws draws(seed);
  Trial trial;
  trial.recipe = draw_recipe(draws, sizes);
  trial.plan = draw_plan(draws);
  return trial;
}

HuntedStep step_of(const HuntedScheduler& scheduler, Trial trial) {
  if (scheduler.program) {
    throw std::invalid_argument("a scheduler with its own programs takes no other steps");
  }
  limit(scheduler, trial);
  return {std::move(trial.recipe), std::move(trial.plan)};
}

Program program_of(const HuntedScheduler& scheduler, const HuntedStep& step) {
  return scheduler_step(scheduler, {step.recipe, {}, step.plan}, 0).program;
}

std::optional<Verdict> judge(const HuntedScheduler& scheduler, const HuntedStep& step) {
  return try_scheduler(scheduler, scheduler_step(scheduler, {step.recipe, {}, step.plan}, 0));
}

}  // namespace ferry::verify
