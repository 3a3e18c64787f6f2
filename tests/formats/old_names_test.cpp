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

}  // namespace
}  // namespace ferry
