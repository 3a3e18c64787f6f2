// What checkpoints promise, over random nested programs, options and choices, and derivatives to
// third order: no hazard, the gradients and the errors of the same program with plain calls, each
// op as often as the rules of nesting say, nothing left, and a peak that follows from how a chain
// is cut.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/layers.h"
#include "tests/sim/support/without_segments.h"
#include "tests/verify/support/gen.h"
#include "verify/oracles/errors.h"
#include "verify/oracles/recomputes.h"
#include "verify/programs/random_program.h"
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

// With segments, and without what is not modelled.
Trial without_strangers(Trial trial) {
  trial.recipe.segments = true;
  trial.recipe.failure = StepFailure::kNone;
  trial.recipe.embeds = true;
  for (Layer& layer : trial.recipe.layers) {
    if (layer.kind == LayerKind::kNested) layer.kind = LayerKind::kLinear;
    if (layer.extra >= Extra::kInnerBackward) layer.extra = Extra::kNothing;
    layer.segment &= ~(kReentrantBit | kSpanBit);
  }
  return trial;
}
rc::Gen<Trial> any_modelled_trial() { return rc::gen::map(any_trial(), without_strangers); }

TEST(CheckpointProp, RecomputingChangesNothingButMemoryAndTime) {
  EXPECT_TRUE(rc::check("segments alone: no oracle objects", [] {
    const Trial trial = *any_segmented_trial();
    RC_LOG() << trial << "\n";
    const Program program = make_program(trial.recipe);
    sim::SimulationOptions options;
    options.segments = trial.plan;
    const sim::Simulation plain =
        sim::simulate(without_segments(program), sim::test_hardware(), {});
    const sim::Simulation run = sim::simulate(program, sim::test_hardware(), options);
    for (const check::Hazard& hazard : run.hazards) RC_FAIL(to_string(hazard));
    RC_ASSERT(run.gradients == plain.gradients);
    RC_ASSERT(sim::messages(run) == sim::messages(plain));
    RC_ASSERT(!run.leftovers.any());
    RC_CLASSIFY(run.checkpoints.recomputes > 0, "recomputed");
    RC_CLASSIFY(run.checkpoints.kept > 0, "some kept");
    RC_CLASSIFY(trial.recipe.derivatives == 3, "third order");
  }));
}

TEST(CheckpointProp, EachOpRunsAsOftenAsTheRulesSay) {
  EXPECT_TRUE(rc::check("counted kernels are those of the model", [] {
    const Trial trial = *any_modelled_trial();
    RC_LOG() << trial << "\n";
    RC_ASSERT(counts_are_known(trial.recipe));
    const Program program = make_program(trial.recipe);
    OpCounter counter;
    sim::SimulationOptions options;
    options.segments = trial.plan;
    options.consumers = {&counter};
    const sim::Simulation run = sim::simulate(program, sim::test_hardware(), options);
    const std::string wrong =
        miscounted(expected_counts(program, trial.plan.get()).ops, counter.counts);
    if (!wrong.empty()) RC_FAIL(wrong);
    RC_ASSERT(!run.leftovers.any());
    RC_CLASSIFY(run.checkpoints.recomputes > 0, "recomputed");
    RC_CLASSIFY(trial.recipe.derivatives == 3, "third order");
  }));
}

// Of a gradient that has no graph there are no further derivatives: that must not be the rule. And
// each order is a backward more, for which segments run again.
TEST(CheckpointProp, ItsProgramsReachThirdOrder) {
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Draws draws(seed);
    Trial trial = without_strangers(draw_trial(draws));
    std::int64_t recomputes = 0;
    bool more = true;
    bool third = false;
    for (const int order : {1, 2, 3}) {
      trial.recipe.derivatives = order;
      OpCounter counter;
      sim::SimulationOptions options;
      options.consumers = {&counter};
      const sim::Simulation run =
          sim::simulate(make_program(trial.recipe), sim::test_hardware(), options);
      more &= run.checkpoints.recomputes > recomputes;
      recomputes = run.checkpoints.recomputes;
      third = counter.counts.contains(gradient_op(3, 0));
    }
    reached += more && third ? 1 : 0;
  }
  EXPECT_GE(reached, 25);
}

TEST(CheckpointProp, AndSoDoesOffloadingBesideIt) {
  EXPECT_TRUE(rc::check("segments and an offloader: no oracle objects", [] {
    const Trial trial = *any_segmented_trial();
    RC_LOG() << trial << "\n";
    const auto verdict = try_core(trial);
    if (verdict) RC_FAIL(to_string(*verdict));
  }));
}

// The segments' inputs, what one of them saves, and a few gradients.
TEST(CheckpointProp, AChainsPeakFollowsFromItsCut) {
  EXPECT_TRUE(rc::check("segments + layers of one, not segments * layers", [] {
    const int segments = *in_range(1, 12);
    const int layers = *in_range(1, 12);
    const bool retain = *in_range(0, 2) != 0;
    Layers p;
    const CodeId id = p.segment();
    Slot x = p.b.argument(id);
    for (int i = 0; i < layers; ++i) {
      const Slot y = p.layer(id, "layer", x);
      p.b.add(id, Free{{x}});
      x = y;
    }
    p.b.result(id, x);
    Slot y = p.begin();
    for (int i = 0; i < segments; ++i) {
      const Slot next = p.call(0, id, {y})[0];
      p.b.add(0, Free{{y}});
      y = next;
    }
    p.backward(y, retain);
    Census census;
    sim::SimulationOptions options;
    options.consumers = {&census};
    RC_ASSERT(!sim::simulate(p.take(), sim::test_hardware(), options).leftovers.any());
    RC_ASSERT(census.peak <= segments + layers + 6);
  }));
}

}  // namespace
}  // namespace ferry::test
