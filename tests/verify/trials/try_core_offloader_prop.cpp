// The core's promise, over random programs and options: no hazard, gradients equal to keep's,
// errors equal to keep's, nothing left, nothing moved in vain that could be known, memory within
// its bounds.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "formats/program_check.h"
#include "formats/program_file.h"
#include "sim/run/training/test_hardware.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"
#include "verify/trials/try_core.h"

namespace ferry::test {
namespace {

TEST(OffloaderProp, RandomProgramsAreSound) {
  EXPECT_TRUE(rc::check("a random program does not contradict itself", [] {
    const Trial trial = *any_trial();
    check_program(make_program(trial.recipe), "random");
  }));
}

TEST(OffloaderProp, KeepItselfIsSafe) {
  EXPECT_TRUE(rc::check("without hooks there is no hazard and nothing is left", [] {
    const Trial trial = *any_trial();
    const sim::Simulation run = sim::simulate(make_program(trial.recipe), sim::test_hardware(), {});
    for (const check::Hazard& hazard : run.hazards) RC_FAIL(to_string(hazard));
    RC_ASSERT(!run.leftovers.any());
    // (Without gradients there may be nothing to go backward through.)
    if (!trial.recipe.embeds) return;
    RC_ASSERT(run.errors.size() <= (trial.recipe.failure != StepFailure::kNone ? 2u : 0u));
  }));
}

TEST(OffloaderProp, OffloadChangesNothingButMemory) {
  EXPECT_TRUE(rc::check("no oracle objects", [] {
    const Trial trial = *any_trial();
    RC_LOG() << trial << "\n";
    const auto verdict = try_core(trial);
    if (verdict) RC_FAIL(to_string(*verdict));
  }));
}

}  // namespace
}  // namespace ferry::test
