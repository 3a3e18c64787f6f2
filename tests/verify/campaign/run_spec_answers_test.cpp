// Every answer that CUDA and PyTorch may give, enumerated over small programs.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "sim/choices/strategies.h"
#include "verify/campaign/replay_line.h"
#include "verify/campaign/run_spec.h"
#include "verify/core/core_trials.h"
#include "verify/core/matrix.h"
#include "verify/trials/try_core.h"

namespace ferry::verify {
namespace {

// The first dozen of choices of small programs, every way: the core is safe whatever is answered.
TEST(RunSpecAnswers, EveryAnswerIsSafe) {
  std::uint64_t runs = 0;
  for (std::uint64_t number = 0; number < 30; ++number) {
    Draws draws(11, number);
    Trial trial = draw_trial(draws);
    trial.recipe.failure = StepFailure::kNone;
    trial.recipe.layers.resize(1);
    trial.recipe.microbatches = 1;
    choices::Enumeration all({.places = 12, .deviations = 3});
    do {
      choices::EnumeratedChoices choices(all);
      Conditions conditions;
      conditions.choices = &choices;
      const auto verdict = try_core(trial, {}, conditions);
      ASSERT_FALSE(verdict) << trial << "\n" << to_string(*verdict);
    } while (all.next());
    runs += all.runs();
  }
  EXPECT_GE(runs, 300u);
}

// And what only unusual answers show is found: a pool that blocks when a copy is late.
TEST(RunSpecAnswers, AnEnumerationFindsWhatTheUsualAnswersHide) {
  const auto rows = mutation_matrix({*find_mutant("world.pool-blocks")}, {});
  RunSpec spec = parse_line(rows.front().replay, {&core_trials()});
  const std::size_t deviations = spec.deviations.size();
  ASSERT_GT(deviations, 0u);
  spec.deviations.clear();
  EXPECT_FALSE(try_spec(spec));
  bool found = false;
  choices::Enumeration all({.deviations = deviations});
  do {
    choices::EnumeratedChoices choices(all);
    found = try_spec(spec, &choices, nullptr).has_value();
  } while (!found && all.next());
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace ferry::verify
