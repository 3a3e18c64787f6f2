#include "shared/checkpoint/sequential.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shown_rules.h"

namespace ferry {
namespace {

using Cut = std::vector<SequentialSegment>;

// Each segment but the last is as long as the others can be, and the last has no checkpoint. The
// judge takes the chain's length for its seed.
test::Objection judge_chain(std::uint64_t functions, const Rules& rules) {
  const auto length = static_cast<std::int64_t>(functions);
  for (std::int64_t segments = 1; segments <= length; ++segments) {
    const Cut cut = sequential_segments(length, segments, rules);
    std::int64_t next = 0;
    bool right = static_cast<std::int64_t>(cut.size()) == segments;
    for (const SequentialSegment& each : cut) {
      const bool last = &each == &cut.back();
      right = right && each.begin == next && each.checkpoint != last &&
              (last || each.end - each.begin == length / segments);
      next = each.end;
    }
    if (!right || next != length) return "a chain in " + std::to_string(segments);
  }
  return std::nullopt;
}

TEST(SequentialTest, TheLastSegmentTakesTheRemainderAndIsNoCheckpoint) {
  EXPECT_EQ(sequential_segments(10, 4),
            (Cut{{0, 2}, {2, 4}, {4, 6}, {.begin = 6, .end = 10, .checkpoint = false}}));
  EXPECT_EQ(sequential_segments(6, 2), (Cut{{0, 3}, {.begin = 3, .end = 6, .checkpoint = false}}));
}

TEST(SequentialTest, ChainsOfAnyLengthAreCutSo) {
  const auto core = [](std::uint64_t length) { return judge_chain(length, {}); };
  EXPECT_EQ(test::first_objection(core, 8), "");
}

TEST(SequentialTest, TheRuleOfTheLastSegmentShows) {
  test::expect_shown(test::kShownByChains, judge_chain, 8);
}

TEST(SequentialTest, OneSegmentIsTheChainWithoutACheckpoint) {
  EXPECT_EQ(sequential_segments(5, 1), (Cut{{.end = 5, .checkpoint = false}}));
}

TEST(SequentialTest, AsManySegmentsAsFunctions) {
  EXPECT_EQ(sequential_segments(3, 3),
            (Cut{{0, 1}, {1, 2}, {.begin = 2, .end = 3, .checkpoint = false}}));
}

TEST(SequentialTest, OtherNumbersOfSegmentsAreRefused) {
  for (const auto& [length, segments] : {std::pair{3, 0}, {3, -1}, {3, 4}, {0, 1}, {0, 0}}) {
    try {
      sequential_segments(length, segments);
      ADD_FAILURE() << segments << " segments of " << length << " functions";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(),
                "checkpoint_sequential: segments should be from 1 to the number of functions, " +
                    std::to_string(length) + ", but is " + std::to_string(segments));
    }
  }
}

}  // namespace
}  // namespace ferry
