#include "formats/old_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry {
namespace {

constexpr OldName kNames[] = {{"--hardware", "--card"}, {"--chunks", "--microbatches"}};

TEST(OldNames, AreReplacedAndTold) {
  const NewNames found = with_new_names({"gpt2", "--hardware", "h100", "--chunks=4"}, kNames);
  EXPECT_EQ(found.words, (std::vector<std::string>{"gpt2", "--card", "h100", "--microbatches=4"}));
  ASSERT_EQ(found.notes.size(), 2U);
  EXPECT_EQ(found.notes[0],
            "--hardware is called --card now; the old name goes with the next version");
}

TEST(OldNames, WhatOnlyBeginsOrEndsLikeOneIsLeft) {
  const std::vector<std::string> words = {"--hardware-x", "hardware", "--card", "--"};
  const NewNames found = with_new_names(words, kNames);
  EXPECT_EQ(found.words, words);
  EXPECT_TRUE(found.notes.empty());
}

TEST(OldNames, AValueIsReplacedByItselfAndInAList) {
  constexpr OldValue kValues[] = {{"--policy", "budget", "offload-some"}};
  const NewNames found = with_new_names(
      {"--policy", "budget", "--policy=keep,budget,best", "--budget", "budget"}, {}, kValues);
  EXPECT_EQ(found.words,
            (std::vector<std::string>{"--policy", "offload-some", "--policy=keep,offload-some,best",
                                      "--budget", "budget"}));
  ASSERT_EQ(found.notes.size(), 2U);
  EXPECT_EQ(found.notes[0],
            "--policy budget is called offload-some now; the old name goes with the next version");
}

TEST(OldNames, OfAValueTheWholeWordCounts) {
  constexpr OldValue kValues[] = {{"--policy", "budget", "offload-some"}};
  const std::vector<std::string> words = {"--policy", "budgets,my-budget", "--policy=", "--policy"};
  const NewNames found = with_new_names(words, {}, kValues);
  EXPECT_EQ(found.words, words);
  EXPECT_TRUE(found.notes.empty());
}

}  // namespace
}  // namespace ferry
