// A scheduler as users write it is hunted: what is wrong is found by the oracle that fits, what is
// right is clean, and a failure's line replays it.
#include "verify/hunt/hunt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "formats/error.h"
#include "tests/verify/hunt/schedulers.h"

namespace ferry::verify {
namespace {

using test::sends;
using test::Wrong;

std::string words(const Hunt& found) { return found.report ? found.report->text : ""; }

TEST(Hunt, WhatIsRightIsClean) {
  const Hunt found = hunt(sends());
  EXPECT_FALSE(found.report) << words(found);
  EXPECT_EQ(found.coverage.programs, 1000);
  EXPECT_GT(found.coverage.chosen, 100) << "answers are drawn";
  EXPECT_GT(found.coverage.schedules, 0) << "some are looked at closely";
  EXPECT_TRUE(found.coverage.features.contains("reentrant segment"));
}

struct Row {
  Wrong wrong;
  Oracle oracle;
};

TEST(Hunt, WhatIsWrongIsFoundByTheOracleThatFits) {
  for (const auto& [wrong, oracle] :
       {Row{Wrong::kWaitsForNothing, Oracle::kHappensBefore},
        Row{Wrong::kAsksNoVersion, Oracle::kHappensBefore}, Row{Wrong::kLeaksHost, Oracle::kLeak},
        Row{Wrong::kSaysItHolds, Oracle::kLeak}, Row{Wrong::kThrowsAlone, Oracle::kError}}) {
    const Hunt found = hunt(sends(wrong));
    ASSERT_TRUE(found.report) << static_cast<int>(wrong);
    EXPECT_EQ(found.report->verdict->oracle, oracle) << words(found);
  }
}

TEST(Hunt, APromiseIsHeldTo) {
  HuntedScheduler moves_none = sends(Wrong::kKeepsTensors);
  EXPECT_FALSE(hunt(moves_none).report);
  moves_none.moves_all = true;
  Hunt found = hunt(moves_none);
  ASSERT_TRUE(found.report);
  EXPECT_EQ(found.report->verdict->oracle, Oracle::kMoves);
  // It sends a tensor as often as it is saved, and parameters as well.
  HuntedScheduler moves_once = sends();
  moves_once.moves_once = true;
  found = hunt(moves_once);
  ASSERT_TRUE(found.report);
  EXPECT_EQ(found.report->verdict->oracle, Oracle::kMoves);
  HuntedScheduler moves_all = sends();
  moves_all.moves_all = true;
  EXPECT_FALSE(hunt(moves_all).report);
  moves_all.peak_bytes_above_keep = -(std::int64_t{1} << 40);
  found = hunt(moves_all);
  ASSERT_TRUE(found.report);
  EXPECT_EQ(found.report->verdict->oracle, Oracle::kBound);
}

TEST(Hunt, CallsFailWhereItIsAskedTo) {
  HuntedScheduler scheduler = sends();
  EXPECT_EQ(hunt(scheduler).coverage.failures, 0);
  scheduler.survives_failures = true;
  const Hunt found = hunt(scheduler);
  EXPECT_FALSE(found.report) << words(found);
  EXPECT_GT(found.coverage.failures, 50);
}

TEST(Hunt, EveryWay) {
  HuntOptions options{.programs = 20, .jobs = 2, .small = true, .every_way = 1};
  Hunt found = hunt(sends(), options);
  EXPECT_FALSE(found.report) << words(found);
  EXPECT_EQ(found.coverage.failures, 0);
  const std::int64_t without_failures = found.coverage.runs;
  EXPECT_GT(without_failures, 100);
  HuntedScheduler survives = sends();
  survives.survives_failures = true;
  found = hunt(survives, options);
  EXPECT_FALSE(found.report) << words(found);
  EXPECT_GT(found.coverage.runs, 2 * without_failures);
  HuntedScheduler early = sends(Wrong::kGivesBackEarly);
  early.survives_failures = true;
  found = hunt(early, options);
  ASSERT_TRUE(found.report);
  EXPECT_EQ(found.report->verdict->oracle, Oracle::kHappensBefore) << words(found);
  EXPECT_NE(words(found).find("take the step `host return`"), std::string::npos);
}

TEST(Hunt, ThreadsDoNotShow) {
  HuntOptions options{.seed = 3, .programs = 300};
  const Hunt one = hunt(sends(Wrong::kAsksNoVersion), options);
  options.jobs = 4;
  const Hunt four = hunt(sends(Wrong::kAsksNoVersion), options);
  EXPECT_EQ(words(one), words(four));
  EXPECT_EQ(one.number, four.number);
  EXPECT_EQ(one.coverage.operations, four.coverage.operations);
}

TEST(Hunt, TheLastLineReplays) {
  const std::vector<HuntedScheduler> all = {sends(Wrong::kWaitsForNothing)};
  const Hunt found = hunt(all.front(), {}, "./mine --replay");
  ASSERT_TRUE(found.report);
  const std::string& text = found.report->text;
  const std::string before = "again    ./mine --replay '";
  const std::size_t at = text.find(before);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at + before.size(), text.rfind('\'') - at - before.size());
  EXPECT_EQ(replay(all, line, "./mine --replay").text, text);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
  EXPECT_THROW(replay({}, line), InputError);
}

// The options of a core that takes no part.
TEST(Hunt, AReportSaysWhatTheProgramStillHas) {
  const Hunt found = hunt(sends(Wrong::kAsksNoVersion));
  EXPECT_NE(words(found).find("\nhas      late-writes\n"), std::string::npos) << words(found);
  EXPECT_EQ(words(found).find("copy stream"), std::string::npos) << words(found);
}

TEST(Hunt, WhatIsLeftOutIsNotDrawn) {
  HuntedScheduler scheduler = sends(Wrong::kAsksNoVersion);
  scheduler.without = {Feature::kLateWrites};
  const Hunt found = hunt(scheduler);
  EXPECT_FALSE(found.report) << words(found);
  EXPECT_FALSE(found.coverage.features.contains("a saved tensor written"));
  scheduler.without = {Feature::kCheckpoints, Feature::kLateWrites};
  EXPECT_FALSE(hunt(scheduler).coverage.features.contains("checkpoints"));
}

TEST(Hunt, OneProgramAlone) {
  const Hunt found = hunt(sends(Wrong::kAsksNoVersion));
  const Hunt alone = hunt(sends(Wrong::kAsksNoVersion), {.only = found.number});
  EXPECT_EQ(words(alone), words(found));
  EXPECT_EQ(alone.coverage.programs, 1);
}

TEST(Hunt, ANameThatNoLineCanHaveIsRefused) {
  for (const char* name : {"", "two words", "a~b", "'"}) {
    HuntedScheduler scheduler = sends();
    scheduler.name = name;
    EXPECT_THROW(hunt(scheduler), std::invalid_argument) << name;
  }
}

}  // namespace
}  // namespace ferry::verify
