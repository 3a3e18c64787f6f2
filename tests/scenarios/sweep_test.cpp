#include "scenarios/sweep.h"

#include <gtest/gtest.h>

#include "formats/error.h"

namespace ferry {
namespace {

const std::string kText = R"(programs = ["gpt2", "mine.jsonl"]
hardware = ["h100", "cards/b.toml"]
budgets = ["card", "50%", "2GiB"]
policies = ["keep", "best"]
microbatches = [1, 4]
spans = [false, true]
)";

std::string refusal(const std::string& text) {
  try {
    parse_sweep(text, "plans/s.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string refusal(const std::string& piece, const std::string& instead) {
  std::string text = kText;
  text.replace(text.find(piece), piece.size(), instead);
  return refusal(text);
}

std::string words(const Sweep& sweep, std::size_t item) {
  std::string text;
  for (std::size_t i = 0; i < kSweepKeys.size(); ++i) {
    text += (i == 0 ? "" : " ") + sweep.value(sweep.items[item], static_cast<SweepKey>(i));
  }
  return text;
}

TEST(SweepTest, TheItemsAreAllCombinationsAndPoliciesVaryFastest) {
  const Sweep sweep = parse_sweep(kText, "s.toml");
  ASSERT_EQ(sweep.items.size(), 2u * 2 * 3 * 2 * 2 * 2);
  EXPECT_EQ(words(sweep, 0), "gpt2 h100 adamw 1 fbfb false card keep");
  EXPECT_EQ(words(sweep, 1), "gpt2 h100 adamw 1 fbfb false card best");
  EXPECT_EQ(words(sweep, 2), "gpt2 h100 adamw 1 fbfb false 50% keep");
  EXPECT_EQ(words(sweep, 6), "gpt2 h100 adamw 1 fbfb true card keep");
  EXPECT_EQ(words(sweep, 95), "mine.jsonl cards/b.toml adamw 4 fbfb true 2GiB best");
}

TEST(SweepTest, SkipLeavesOutWhatMatchesAllOfItsLists) {
  const Sweep sweep = parse_sweep(
      kText + "[[skip]]\nprograms = [\"gpt2\"]\nbudgets = [\"50%\", \"2GiB\"]\n", "s.toml");
  EXPECT_EQ(sweep.items.size(), 96u - 2 * 2 * 2 * 2 * 2);
  for (std::size_t i = 0; i < sweep.items.size(); ++i) {
    EXPECT_FALSE(words(sweep, i).starts_with("gpt2 ") &&
                 words(sweep, i).find(" card ") == std::string::npos)
        << words(sweep, i);
  }
}

TEST(SweepTest, OfSeveralOnlyOneMustMatch) {
  const Sweep sweep = parse_sweep(kText +
                                      "[[only]]\npolicies = [\"keep\"]\nspans = [false]\n"
                                      "[[only]]\nmicrobatches = [4]\nprograms = [\"gpt2\"]\n",
                                  "s.toml");
  EXPECT_EQ(sweep.items.size(), 24u + 24 - 6);
}

TEST(SweepTest, PathsAreBesideTheFileAndNamesAreNot) {
  const Sweep sweep = parse_sweep(kText, "plans/s.toml");
  EXPECT_EQ(sweep.found_by("gpt2"), "gpt2");
  EXPECT_EQ(sweep.found_by("cards/b.toml"), "plans/cards/b.toml");
}

TEST(SweepTest, ABudgetIsAShareOrASizeOrTheCards) {
  EXPECT_EQ(sweep_budget("card", 1000), 1000);
  EXPECT_EQ(sweep_budget("33%", 1001), 330);
  EXPECT_EQ(sweep_budget("2KiB", 1000), 2048);
}

TEST(SweepTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(refusal("budgets", "budget"), "plans/s.toml:3: unknown key \"budget\"");
  EXPECT_EQ(refusal("\"50%\"", "\"card\""), "plans/s.toml:3: expected budgets: each one once");
  EXPECT_EQ(refusal("\"50%\"", "\"0B\""), "plans/s.toml:3: expected budgets: more than 0");
  EXPECT_EQ(refusal("\"50%\"", "\"500%\"").substr(0, 61),
            "plans/s.toml:3: expected budgets: \"card\", a share such as 80%");
  EXPECT_EQ(refusal("[1, 4]", "[1, 0]"),
            "plans/s.toml:5: expected microbatches: integers from 1 to 4096");
  EXPECT_EQ(refusal("[1, 4]", "[\"1\"]"),
            "plans/s.toml:5: expected microbatches: a list of integers");
  EXPECT_EQ(refusal("[false, true]", "[0]"),
            "plans/s.toml:6: expected spans: a list of true and false");
  EXPECT_EQ(refusal("\"gpt2\"", "1"), "plans/s.toml:1: expected programs: a list of strings");
  EXPECT_EQ(refusal("programs", "#"), "plans/s.toml: expected a key \"programs\"");
  EXPECT_EQ(refusal(kText + "[[skip]]\npolicies = [\"mixed\"]\n"),
            "plans/s.toml:8: expected skip[0].policies: values of the list above, not \"mixed\"");
  EXPECT_EQ(refusal(kText + "[[skip]]\npolicy = [\"keep\"]\n"),
            "plans/s.toml:8: unknown key \"skip[0].policy\"");
  EXPECT_EQ(refusal(kText + "[[skip]]\nspans = [false, true]\n"),
            "plans/s.toml: expected at least one item: [[skip]] and [[only]] leave out all");
}

TEST(SweepTest, TooManyCombinationsAreRefused) {
  std::string budgets;
  for (int i = 1; i <= 1000; ++i) {
    budgets += (i == 1 ? "\"" : ", \"") + std::to_string(i) + "MiB\"";
  }
  EXPECT_EQ(refusal("programs = [" + budgets + "]\nhardware = [" + budgets + "]\nbudgets = [" +
                    budgets + "]\n"),
            "plans/s.toml: expected at most 1000000 combinations");
}

}  // namespace
}  // namespace ferry
