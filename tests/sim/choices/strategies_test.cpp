// Strategies: what they answer, and that nothing is left out or comes twice.
#include "sim/choices/strategies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace ferry::choices {
namespace {

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

}  // namespace
}  // namespace ferry::choices
