// The card that somebody meant, by its numbers.
#include "scenarios/card_meant.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/error.h"
#include "scenarios/hardware.h"

namespace ferry {
namespace {

const std::vector<CardName>& cards() {
  static const std::vector<CardName> all = {{"a100", "NVIDIA A100 SXM4, 80 GB HBM2e"},
                                            {"a100-40", "NVIDIA A100 SXM4, 40 GB HBM2"},
                                            {"rtx4090", "NVIDIA GeForce RTX 4090, 24 GB"},
                                            {"t4", "NVIDIA T4, 16 GB"}};
  return all;
}

TEST(CardMeantTest, ItHasEveryNumberThatWasTyped) {
  const std::string a100 = "did you mean 'a100' (NVIDIA A100 SXM4, 80 GB HBM2e)?";
  EXPECT_EQ(card_meant("A100-80GB", cards()), a100);
  EXPECT_EQ(card_meant("NVIDIA A100-SXM4-80GB", cards()), a100);
  EXPECT_EQ(card_meant("a100 80 GiB", cards()), a100);
  EXPECT_EQ(card_meant("4090", cards()),
            "did you mean 'rtx4090' (NVIDIA GeForce RTX 4090, 24 GB)?");
  EXPECT_EQ(card_meant("Tesla T4", cards()), "did you mean 't4' (NVIDIA T4, 16 GB)?");
  EXPECT_NE(card_meant("A100", cards()).find("'a100' (NVIDIA A100 SXM4, 80 GB HBM2e) or 'a100-40'"),
            std::string::npos);
}

TEST(CardMeantTest, WhereNothingTellsItIsEmpty) {
  for (const char* asked : {"", "hopper", "rtx409", "A100-24GB", "5090"}) {
    EXPECT_EQ(card_meant(asked, cards()), "") << asked;
  }
  const std::vector<CardName> many = {{"x1", ""}, {"y1", ""}, {"z1", ""}, {"w1", ""}};
  EXPECT_EQ(card_meant("1", many), "");
}

TEST(CardMeantTest, FindingACardSaysIt) {
  try {
    find_hardware("RTX 4090");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'rtx4090'"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ferry
