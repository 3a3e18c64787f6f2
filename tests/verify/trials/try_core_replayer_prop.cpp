// What spans promise, over random nested programs and derivatives to third order: no hazard, the
// gradients and the errors of the same program with plain calls, and nothing left; alone, among
// checkpoints, and under offloading.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/without_segments.h"
#include "tests/verify/support/gen.h"
#include "tests/verify/trials/spans.h"
#include "verify/programs/random_program.h"
#include "verify/programs/trial.h"
#include "verify/trials/try_core.h"

namespace ferry::test {
namespace {

rc::Gen<Trial> any_segmented_trial() {
  return rc::gen::map(any_trial(), [](Trial trial) {
    trial.recipe.segments = true;
    if (fails_again(trial.recipe.failure)) trial.recipe.failure = StepFailure::kNone;
    return trial;
  });
}

void expect_as_plain(const Trial& trial, int nth, bool offload) {
  RC_LOG() << trial << "\n";
  const Program program = make_program(trial.recipe);
  sim::SimulationOptions options;
  if (offload) options.offload = trial.options;
  const sim::Simulation plain = sim::simulate(without_segments(program), sim::test_hardware(), {});
  const sim::Simulation run =
      sim::simulate(with_spans(program, nth), sim::test_hardware(), options);
  const std::string wrong = wrong_in(run, plain);
  if (!wrong.empty()) RC_FAIL(wrong);
  RC_CLASSIFY(run.replays.calls_replayed > 0, "replayed");
  RC_CLASSIFY(run.checkpoints.recomputes > 0, "recomputed");
  RC_CLASSIFY(run.statistics.reloaded_count > 0, "reloaded");
}

TEST(ReplayProp, ReplayingChangesNothingButMemoryAndTime) {
  EXPECT_TRUE(rc::check("spans alone: no oracle objects",
                        [] { expect_as_plain(*any_segmented_trial(), 0, false); }));
}

TEST(ReplayProp, NorDoesItAmongCheckpoints) {
  EXPECT_TRUE(rc::check("spans and checkpoints, in one another: no oracle objects",
                        [] { expect_as_plain(*any_segmented_trial(), *in_range(2, 4), false); }));
}

TEST(ReplayProp, NorUnderOffloading) {
  EXPECT_TRUE(rc::check("spans, checkpoints and an offloader: no oracle objects", [] {
    expect_as_plain(*any_segmented_trial(), *in_range(2, 4) % 3, true);
  }));
}

}  // namespace
}  // namespace ferry::test
