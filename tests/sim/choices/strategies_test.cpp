// Strategies: what they answer, and that nothing is left out or comes twice.
#include "sim/choices/strategies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "verify/campaign/replay_line.h"
#include "verify/campaign/run_spec.h"
#include "verify/report/matrix.h"
#include "verify/trials/try_core.h"

namespace ferry::choices {
namespace {

using verify::Conditions;
using verify::draw_trial;
using verify::Trial;
using verify::try_core;

TEST(Strategies, AnEnumerationGoesEveryWayOnce) {
  // The third question is asked where the first was answered with 1.
  std::set<std::vector<std::uint32_t>> seen;
  Enumeration all({});
  do {
    EnumeratedChoices choices(all);
    std::vector<std::uint32_t> answers;
    answers.push_back(choices.choose(ChoicePoint::kPoll, 2));
    answers.push_back(choices.choose(ChoicePoint::kWorker, 3));
    if (answers[0] == 1) answers.push_back(choices.choose(ChoicePoint::kPoll, 2));
    EXPECT_EQ(choices.choose(ChoicePoint::kWorker, 1), 0u);
    EXPECT_TRUE(seen.insert(answers).second);
  } while (all.next());
  EXPECT_EQ(seen.size(), 3u + 6u);
  EXPECT_EQ(all.runs(), 9u);
}

TEST(Strategies, AnEnumerationEndsAtItsBound) {
  Enumeration all({.places = 2});
  do {
    EnumeratedChoices choices(all);
    for (int i = 0; i < 20; ++i) choices.choose(ChoicePoint::kPoll, 2);
  } while (all.next());
  EXPECT_EQ(all.runs(), 4u);
}

TEST(Strategies, MemoryRunsOutOnceInARun) {
  Enumeration all({});
  do {
    EnumeratedChoices choices(all);
    std::uint32_t failed = 0;
    for (int i = 0; i < 4; ++i) failed += choices.choose(ChoicePoint::kMemory, 2);
    EXPECT_LE(failed, 1u);
  } while (all.next());
  EXPECT_EQ(all.runs(), 5u);
}

TEST(Strategies, AFailureIsOneOfAllCallsAndAllocations) {
  RandomChoices random(1);
  OneFailure failing(2, &random);
  std::vector<std::uint32_t> answers;
  for (int i = 0; i < 5; ++i) {
    failing.choose(ChoicePoint::kPoll, 2);
    answers.push_back(failing.choose(i % 2 == 0 ? ChoicePoint::kMemory : ChoicePoint::kFault, 2));
  }
  EXPECT_EQ(answers, (std::vector<std::uint32_t>{0, 0, 1, 0, 0}));
  EXPECT_EQ(failing.failure(), 2u);
  EXPECT_EQ(random.count(), 5u);  // the polls
  EXPECT_FALSE(random.failure());
}

TEST(Strategies, AnEnumerationDeviatesAsOftenAsItMay) {
  for (const std::uint64_t most : {0u, 1u, 2u}) {
    std::size_t seen = 0;
    Enumeration all({.deviations = most});
    do {
      EnumeratedChoices choices(all);
      for (int i = 0; i < 5; ++i) choices.choose(ChoicePoint::kPoll, 2);
      EXPECT_LE(choices.deviations().size(), most);
      seen = std::max(seen, choices.deviations().size());
    } while (all.next());
    EXPECT_EQ(seen, most);
    EXPECT_EQ(all.runs(), most == 0 ? 1u : most == 1 ? 6u : 16u);  // 1 + 5 + 10
  }
}

// The one of the highest priority goes on, until it cannot.
TEST(Strategies, PctKeepsToOneActor) {
  PctChoices pct(3, 100, 0);
  const std::vector<std::uint32_t> all = {4, 7, 9}, others = {4, 9};
  const std::uint32_t first = pct.turn(ChoicePoint::kWorker, all);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pct.turn(ChoicePoint::kWorker, all), first);
  const std::uint32_t actor = all[first];
  std::set<std::uint32_t> firsts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    firsts.insert(PctChoices(seed, 100, 0).turn(ChoicePoint::kWorker, all));
  }
  EXPECT_EQ(firsts.size(), 3u);
  EXPECT_EQ(others[pct.turn(ChoicePoint::kWorker, others)] == actor, actor != 7);
}

TEST(Strategies, ReplayGivesTheSameAnswers) {
  RandomChoices random(7);
  std::vector<std::uint32_t> answers;
  for (int i = 0; i < 100; ++i) answers.push_back(random.choose(ChoicePoint::kWorker, 5));
  ReplayedChoices replayed(random.deviations());
  for (const std::uint32_t answer : answers) {
    EXPECT_EQ(replayed.choose(ChoicePoint::kWorker, 5), answer);
  }
  EXPECT_EQ(replayed.deviations(), random.deviations());
}

// The first dozen of choices of small programs, every way: the core is safe whatever is answered.
TEST(Strategies, EveryAnswerIsSafe) {
  std::uint64_t runs = 0;
  for (std::uint64_t number = 0; number < 30; ++number) {
    Draws draws(11, number);
    Trial trial = draw_trial(draws);
    trial.recipe.failure = verify::StepFailure::kNone;
    trial.recipe.layers.resize(1);
    trial.recipe.microbatches = 1;
    Enumeration all({.places = 12, .deviations = 3});
    do {
      EnumeratedChoices choices(all);
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
TEST(Strategies, AnEnumerationFindsWhatTheUsualAnswersHide) {
  const auto rows = verify::mutation_matrix({*verify::find_mutant("world.pool-blocks")}, {});
  verify::RunSpec spec = verify::parse_line(rows.front().replay);
  const std::size_t deviations = spec.deviations.size();
  ASSERT_GT(deviations, 0u);
  spec.deviations.clear();
  EXPECT_FALSE(try_spec(spec));
  bool found = false;
  Enumeration all({.deviations = deviations});
  do {
    EnumeratedChoices choices(all);
    found = try_spec(spec, &choices, nullptr).has_value();
  } while (!found && all.next());
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace ferry::choices
