#include "formats/nearest.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(NearestTest, ASlipIsALetterTooManyTooFewAnotherOrTwoThatChangedPlaces) {
  EXPECT_EQ(slips("plan", "plan"), 0u);
  EXPECT_EQ(slips("Plan", "pLAN"), 0u);
  EXPECT_EQ(slips("plna", "plan"), 1u);
  EXPECT_EQ(slips("pln", "plan"), 1u);
  EXPECT_EQ(slips("plann", "plan"), 1u);
  EXPECT_EQ(slips("plon", "plan"), 1u);
  EXPECT_EQ(slips("", "plan"), 4u);
  EXPECT_EQ(slips("plan", ""), 4u);
  EXPECT_EQ(slips("kitten", "sitting"), 3u);
}

TEST(NearestTest, ANameIsFoundAsItIsTypedElseInAnyCase) {
  EXPECT_EQ(find_name("H100", {"a100", "h100"}), 1u);
  EXPECT_EQ(find_name("H100", {"h100", "H100"}), 1u);
  EXPECT_EQ(find_name("h10", {"h100"}), std::nullopt);
  EXPECT_EQ(find_name("", {"h100"}), std::nullopt);
}

TEST(NearestTest, TheNearestNameIsAskedFor) {
  EXPECT_EQ(did_you_mean("plna", {"simulate", "plan"}), ": did you mean 'plan'?");
  EXPECT_EQ(did_you_mean("offlaod", {"offload-all", "offload"}), ": did you mean 'offload'?");
  EXPECT_EQ(did_you_mean("h10", {"a100", "h100", "h200"}), ": did you mean 'h100'?");
  EXPECT_EQ(did_you_mean("h10", {"a10", "h100", "h200"}), ": did you mean 'h100'?");
  EXPECT_EQ(did_you_mean("h10", {"h100", "a10", "h20"}), ": did you mean 'h100'?");
}

TEST(NearestTest, WhatIsFarFromEveryNameIsNot) {
  EXPECT_EQ(did_you_mean("magic", {"keep", "offload", "mixed"}), "");
  EXPECT_EQ(did_you_mean("", {"a"}), "");
  EXPECT_EQ(did_you_mean("x", {"a"}), "");  // every letter is a slip
  EXPECT_EQ(did_you_mean(std::string(1000, 'a'), {std::string(999, 'a')}), "");
}

}  // namespace
}  // namespace ferry
