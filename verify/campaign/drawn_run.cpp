#include "verify/campaign/drawn_run.h"

#include <utility>

#include "sim/choices/strategies.h"

namespace ferry::verify {
namespace {

// Approximate number of turns that the workers of a random pipeline take.
constexpr std::uint64_t kTurns = 64;

// Returns true if answers other than failures may be random. If the program's own calls fail, the
// compared results depend on the usual order of nodes.
bool may_choose(const RunSpec& spec) {
  return spec.is_pipeline() || spec.trial.recipe.failure == StepFailure::kNone;
}

// Tries the spec with random answers, and records the unusual ones in it.
void draw_answers(DrawnRun& drawn, Draws& draws, bool may_choose, bool may_fail,
                  StreamOpConsumer* watch) {
  RunSpec& spec = drawn.spec;
  const bool chooses = draws.one_in(2) && may_choose;
  const bool fails = draws.one_in(6) && may_fail;
  const std::uint64_t seed_of_choices = draws.bits();
  choices::RandomChoices random(seed_of_choices);
  choices::PctChoices pct(seed_of_choices, kTurns, 3);
  choices::Choices* choices = nullptr;
  if (chooses) choices = &random;
  if (chooses && spec.is_pipeline() && draws.one_in(2)) choices = &pct;
  // Early calls must fail as often as late ones, whatever the size of the program.
  const int calls = 1 << draws.in(3, 10);
  choices::OneFailure failing(static_cast<std::uint64_t>(draws.in(0, calls)), choices);
  if (fails) choices = &failing;
  drawn.verdict = try_spec(spec, choices, watch);
  drawn.chosen = chooses;
  if (choices) {
    spec.deviations = choices->deviations();
    drawn.asked = choices->asked();
    drawn.failed = choices->failure().has_value();
  }
}

}  // namespace

RunSpec draw_spec(const CoreTrials& core, const Mutant& mutant, Draws& draws, Sizes sizes) {
  RunSpec spec;
  spec.core = &core;
  spec.mutant = mutant;
  if (spec.is_pipeline()) {
    spec.pipeline = draw_pipeline_trial(draws);
  } else {
    spec.trial = draw_trial(draws, sizes);
  }
  return spec;
}

DrawnRun try_drawn(const CoreTrials& core, const Mutant& mutant, std::uint64_t seed,
                   std::uint64_t number, StreamOpConsumer* watch, Sizes sizes) {
  Draws draws(seed, number);
  DrawnRun drawn;
  drawn.spec = draw_spec(core, mutant, draws, sizes);
  draw_answers(drawn, draws, may_choose(drawn.spec), true, watch);
  return drawn;
}

RunSpec draw_spec(const HuntedScheduler& scheduler, std::uint64_t number, Draws& draws,
                  const SchedulerDraws& what) {
  RunSpec spec;
  spec.scheduler = &scheduler;
  spec.number = number;
  spec.trial.recipe = draw_recipe(draws, what.sizes);
  if (!what.usual) spec.trial.plan = draw_plan(draws);
  draw_frozen(draws, spec.trial.recipe);
  return limited(std::move(spec));
}

DrawnRun try_drawn(const HuntedScheduler& scheduler, std::uint64_t seed, std::uint64_t number,
                   const SchedulerDraws& what, StreamOpConsumer* watch) {
  Draws draws(seed, number);
  DrawnRun drawn;
  drawn.spec = draw_spec(scheduler, number, draws, what);
  if (what.usual) {
    drawn.verdict = try_spec(drawn.spec, watch);
    return drawn;
  }
  draw_answers(drawn, draws, may_choose(drawn.spec), scheduler.survives_failures, watch);
  return drawn;
}

}  // namespace ferry::verify
