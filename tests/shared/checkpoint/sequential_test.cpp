#include "shared/checkpoint/sequential.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ferry {
namespace {

using Cut = std::vector<SequentialSegment>;

TEST(SequentialTest, TheLastSegmentTakesTheRemainderAndIsNoCheckpoint) {
  EXPECT_EQ(sequential_segments(10, 4),
            (Cut{{0, 2}, {2, 4}, {4, 6}, {.begin = 6, .end = 10, .checkpoint = false}}));
  EXPECT_EQ(sequential_segments(6, 2), (Cut{{0, 3}, {.begin = 3, .end = 6, .checkpoint = false}}));
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
