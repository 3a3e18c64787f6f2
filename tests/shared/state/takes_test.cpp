// What is expected after which takes.
#include "shared/state/takes.h"

#include <gtest/gtest.h>

#include <string>

namespace ferry::test {
namespace {

// Wards are letters; '|' is a mark.
class TakesTest : public testing::Test {
 protected:
  // Takes one ward after another. Returns a line: '.' for a ward that was expected, else '!'.
  std::string take(const std::string& wards) {
    std::string surprises;
    for (const char ward : wards) {
      if (ward == '|') {
        takes_.mark(false);
      } else {
        surprises += takes_.took(WardId(static_cast<unsigned char>(ward))) ? '.' : '!';
      }
    }
    return surprises;
  }
  // Returns what is expected, at most `count` wards.
  std::string expected(std::size_t count) const {
    std::string wards;
    for (std::size_t at = takes_.next(); at < takes_.end() && wards.size() < count; ++at) {
      const WardId id = takes_.at(at);
      wards += id == Takes::kMark ? '|' : static_cast<char>(id);
    }
    return wards;
  }

  Takes takes_;
};

TEST_F(TakesTest, NothingIsExpectedAtFirst) {
  EXPECT_EQ(expected(1), "");
  EXPECT_EQ(take("abc"), "!!!");
}

TEST_F(TakesTest, ForwardAndBackwardOfTheSecondStepAreExpected) {
  take("abccba");
  take("a");
  EXPECT_EQ(take("bccbaabccba"), std::string(11, '.'));
}

TEST_F(TakesTest, AfterAnEvaluationTheTrainingIsAsBefore) {
  take("abccbaabccba");
  EXPECT_EQ(take("abcabc"), "...!..");  // in place of a backward, twice
  EXPECT_EQ(take("abc"), "...");        // the evaluation goes on
  EXPECT_EQ(take("cba"), "!..");        // and now the training
  EXPECT_EQ(take("abccba"), "...!..");  // the last time an evaluation began here
  EXPECT_EQ(take("abccba"), "......");
}

TEST_F(TakesTest, AWardUsedTwiceInAForwardIsToldByTheOneBeforeIt) {
  take("eabeeba");
  take("eab");
  EXPECT_EQ(take("eebaeabeebaeab"), std::string(14, '.'));
}

TEST_F(TakesTest, AnUnknownWardChangesNothing) {
  take("abcabc");
  take("a");
  EXPECT_EQ(take("x"), "!");
  EXPECT_EQ(expected(2), "bc");
}

TEST_F(TakesTest, AMarkIsInTheOrder) {
  take("ab|");
  EXPECT_EQ(expected(9), "ab|");
  EXPECT_EQ(take("ab"), "..");
  EXPECT_EQ(expected(1), "|");
  take("|");
  EXPECT_EQ(expected(2), "ab");
}

TEST_F(TakesTest, WhatIsForgottenWasNotTaken) {
  take("abc|abc|");
  take("cba");
  takes_.mark(true);
  EXPECT_EQ(expected(3), "abc");
  EXPECT_EQ(take("abc"), "...");
}

TEST_F(TakesTest, OldTakesAreForgotten) {
  take("abccbaa");
  take("bccba");
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(take("abccba"), "......");
  EXPECT_LT(expected(100000).size(), 1100);
}

}  // namespace
}  // namespace ferry::test
