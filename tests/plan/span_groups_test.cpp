// The groups of operators that are recomputed together or not at all.
#include "plan/span_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/forward.h"

namespace ferry::plan {
namespace {

using testing::Lines;
using testing::op;
using testing::program;

using Numbers = std::vector<std::uint32_t>;

std::string write(const std::string& in) {
  return R"({"op":"w","in":[)" + in + R"(],"out":[],"writes":[0]})";
}
std::string view(const std::string& out, const std::string& of) {
  return "{\"view\":" + out + ",\"of\":" + of + R"(,"dtype":"f32","shape":[2]})";
}

SpanGroups groups(const Lines& forward) {
  const Program made = program(forward, "[2]");
  return span_groups(made, operator_ranges(made));
}

TEST(SpanGroupsTest, AWriteJoinsAllFromTheOneThatMadeWhatItWrites) {
  const SpanGroups found = groups(
      {op("0", "2"), op("0", "3"), op("3", "4"), view("5", "3"), write("5,4"), op("3", "6")});
  EXPECT_EQ(found.group, (Numbers{0, 1, 1, 1, 2}));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_FALSE(found.writes_outside[i] || found.lost[i] || found.reads_written[i]) << i;
  }
}

TEST(SpanGroupsTest, GroupsThatOverlapAreOne) {
  const SpanGroups found =
      groups({op("0", "2"), op("0", "3"), write("2"), op("0", "4"), write("3"), op("0", "5")});
  EXPECT_EQ(found.group, (Numbers{0, 0, 0, 0, 0, 1}));
}

TEST(SpanGroupsTest, AWriteToAGlobalIsOutsideAndItsReadersAreTold) {
  const SpanGroups found =
      groups({op("0", "2"), view("3", "1"), op("3", "4"), write("1"), op("1", "5"), op("4", "6")});
  EXPECT_EQ(found.group, (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(found.writes_outside, (std::vector{false, false, true, false, false}));
  EXPECT_EQ(found.reads_written, (std::vector{false, true, true, true, false}));
}

TEST(SpanGroupsTest, AWriteTooFarFromTheMakerIsOutside) {
  Lines forward = {op("0", "2")};
  for (int i = 3; i < 20; ++i) forward.push_back(op("0", std::to_string(i)));
  forward.push_back(write("2"));
  const SpanGroups found = groups(forward);
  EXPECT_EQ(found.group.back(), 18u);
  EXPECT_TRUE(found.lost.front());
  EXPECT_TRUE(found.writes_outside.back());
  EXPECT_FALSE(found.lost[1]);
}

TEST(SpanGroupsTest, NoGroupHasACallInIt) {
  const SpanGroups found =
      groups({op("0", "2"), R"({"exclude":"begin"})", R"({"exclude":"end"})", write("2")});
  EXPECT_EQ(found.group, (Numbers{0, 1}));
  EXPECT_TRUE(found.lost[0]);
}

}  // namespace
}  // namespace ferry::plan
