// Strategies: what they answer, and that nothing is left out or comes twice.
#include "sim/verify/strategies.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "sim/verify/attempt.h"
#include "sim/verify/judge.h"

namespace ferry::verify {
namespace {

using sim::ChoicePoint;

TEST(Strategies, AnEnumerationGoesEveryWayOnce) {
  // The third question is asked where the first was answered with 1.
  std::set<std::vector<std::uint32_t>> seen;
  Enumeration all(10);
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
  Enumeration all(2);
  do {
    EnumeratedChoices choices(all);
    for (int i = 0; i < 20; ++i) choices.choose(ChoicePoint::kPoll, 2);
  } while (all.next());
  EXPECT_EQ(all.runs(), 4u);
}

TEST(Strategies, MemoryRunsOutOnceInARun) {
  Enumeration all(10);
  do {
    EnumeratedChoices choices(all);
    std::uint32_t failed = 0;
    for (int i = 0; i < 4; ++i) failed += choices.choose(ChoicePoint::kMemory, 2);
    EXPECT_LE(failed, 1u);
  } while (all.next());
  EXPECT_EQ(all.runs(), 5u);
  RandomChoices random(1, 2);
  std::vector<std::uint32_t> answers;
  for (int i = 0; i < 5; ++i) answers.push_back(random.choose(ChoicePoint::kMemory, 2));
  EXPECT_EQ(answers, (std::vector<std::uint32_t>{0, 0, 1, 0, 0}));
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
    trial.recipe.failure = 0;
    trial.recipe.layers.resize(1);
    trial.recipe.microbatches = 1;
    Enumeration all(8);
    do {
      EnumeratedChoices choices(all);
      Conditions conditions;
      conditions.choices = &choices;
      const auto verdict = try_core(trial, {}, conditions);
      ASSERT_FALSE(verdict) << trial << "\n" << verdict->oracle << ": " << verdict->words;
    } while (all.next());
    runs += all.runs();
  }
  EXPECT_GE(runs, 300u);
}

}  // namespace
}  // namespace ferry::verify
