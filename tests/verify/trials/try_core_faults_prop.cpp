// A failure at any step: the error reaches whoever called, no hazard arises, nothing is left, and
// the rest of the program runs.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/without_segments.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"
#include "verify/trials/try_core.h"

namespace ferry::test {
namespace {

// Where the core recovers: a prefetch is a hint, and a release has another way.
bool may_recover(Step step) {
  switch (step) {
    case Step::kReloadAllocate:
    case Step::kReady:
    case Step::kReloadAfterReady:
    case Step::kReloadAfterOffload:
    case Step::kReload:
    case Step::kReloaded:
    case Step::kNodeDone:
    case Step::kReleaseAfterNode:
    case Step::kDiscard:
    case Step::kAbandon:
    case Step::kEscaped:
      return true;
    default:
      return false;
  }
}

TEST(FaultsProp, AFailureAtAnyStepIsSurvived) {
  EXPECT_TRUE(rc::check("an injected fault is told and leaves nothing", [] {
    const Trial trial = *any_trial();
    const auto step = static_cast<Step>(*in_range(1, static_cast<int>(kCheckpointSteps)));
    const int nth = *in_range(0, 12);
    RC_LOG() << trial << " fault at " << name(step) << " #" << nth << "\n";
    const Program program = make_program(trial.recipe);
    const sim::Simulation keep = sim::simulate(without_segments(program), sim::test_hardware(), {});
    sim::SimulationOptions options;
    options.offload = trial.options;
    options.segments = trial.plan;
    options.fault = std::make_shared<FaultPoint>(step, nth);
    const sim::Simulation run = sim::simulate(program, sim::test_hardware(), options);
    for (const check::Hazard& hazard : run.hazards) RC_FAIL(to_string(hazard));
    RC_ASSERT(!run.leftovers.storages);
    RC_ASSERT(!run.leftovers.events);
    RC_ASSERT(!run.leftovers.host_bytes);
    RC_ASSERT(!run.leftovers.core);
    std::size_t told = 0;
    for (const sim::ProgramError& error : run.errors) {
      told += error.message.find("injected fault") != std::string::npos ? 1 : 0;
    }
    RC_ASSERT(told <= 1u);
    if (!options.fault->fired()) RC_ASSERT(told == 0u);
    if (options.fault->fired() && told == 0) RC_ASSERT(may_recover(step));
    RC_ASSERT(run.errors.size() <= keep.errors.size() + 1 + (told > 0 ? 2u : 0u));
    RC_CLASSIFY(options.fault->fired(), "fired");
    RC_CLASSIFY(told > 0, "told");
  }));
}

}  // namespace
}  // namespace ferry::test
