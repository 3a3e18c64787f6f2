#include "sim/verify/campaign/drawn_run.h"

#include "sim/choices/strategies.h"

namespace ferry::verify {
namespace {

// About how many turns the workers of a drawn pipeline take.
constexpr std::uint64_t kTurns = 64;

// Whether other answers than failures may be drawn. Where a program's own calls fail, the results
// that are compared depend on the usual order of nodes.
bool may_choose(const RunSpec& spec) {
  return spec.is_pipeline() || spec.trial.recipe.failure == StepFailure::kNone;
}

}  // namespace

RunSpec draw_spec(const Mutant& mutant, Draws& draws, Sizes sizes) {
  RunSpec spec;
  spec.mutant = mutant;
  if (spec.is_pipeline()) {
    spec.pipeline = draw_pipeline_trial(draws);
  } else {
    spec.trial = draw_trial(draws, sizes);
  }
  return spec;
}

DrawnRun try_drawn(const Mutant& mutant, std::uint64_t seed, std::uint64_t number,
                   StreamOpConsumer* watch, Sizes sizes) {
  Draws draws(seed, number);
  DrawnRun drawn;
  RunSpec& spec = drawn.spec;
  spec = draw_spec(mutant, draws, sizes);
  const bool chooses = draws.one_in(2) && may_choose(spec);
  const bool fails = draws.one_in(6);
  const std::uint64_t seed_of_choices = draws.bits();
  choices::RandomChoices random(seed_of_choices);
  choices::PctChoices pct(seed_of_choices, kTurns, 3);
  choices::Choices* choices = nullptr;
  if (chooses) choices = &random;
  if (chooses && spec.is_pipeline() && draws.one_in(2)) choices = &pct;
  // Early calls as often as late ones, whatever the program's size.
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
  return drawn;
}

DrawnRun try_drawn(const schedulers::SchedulerEntry& scheduler, std::uint64_t seed,
                   std::uint64_t number) {
  Draws draws(seed, number);
  DrawnRun drawn;
  drawn.spec.scheduler = &scheduler;
  drawn.spec.number = number;
  drawn.spec.trial.recipe = draw_recipe(draws);
  drawn.verdict = try_spec(drawn.spec);
  return drawn;
}

}  // namespace ferry::verify
