#include "scenarios/scenario.h"

#include <gtest/gtest.h>

#include "formats/error.h"
#include "scenarios/hardware.h"
#include "scenarios/paths.h"

namespace ferry {
namespace {

const std::string kText = R"(program = "gpt2"
hardware = "mine/card.toml"
budget = "12GiB"
policies = ["keep", "offload-all"]
optimizer = "adamw"
microbatches = 4
)";

std::string error(const std::string& piece, const std::string& instead) {
  std::string text = kText;
  text.replace(text.find(piece), piece.size(), instead);
  try {
    parse_scenario(text, "plans/s.toml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ScenarioTest, EveryKeyIsRead) {
  const Scenario scenario = parse_scenario(kText, "plans/s.toml");
  EXPECT_EQ(scenario.name, "s");
  EXPECT_EQ(scenario.program, "gpt2");
  EXPECT_EQ(scenario.hardware, "plans/mine/card.toml");  // a path is relative to the file
  EXPECT_EQ(scenario.budget_bytes, std::int64_t{12} << 30);
  EXPECT_EQ(scenario.policies, (std::vector{Policy::kKeep, Policy::kOffloadAll}));
  EXPECT_EQ(scenario.optimizer, "adamw");
  EXPECT_EQ(scenario.microbatches, 4);
}

TEST(ScenarioTest, WhatMayBeMissingHasADefault) {
  const Scenario scenario =
      parse_scenario("program = \"p\"\nhardware = \"h\"\npolicies = [\"keep\"]\n", "s.toml");
  EXPECT_EQ(scenario.budget_bytes, std::nullopt);
  EXPECT_EQ(scenario.optimizer, "adamw");
  EXPECT_EQ(scenario.microbatches, 1);
}

TEST(ScenarioTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error("budget =", "budgets ="), "plans/s.toml:3: unknown key \"budgets\"");
  EXPECT_EQ(error("\"12GiB\"", "\"0GiB\""), "plans/s.toml:3: expected budget: more than 0");
  EXPECT_EQ(error("\"offload-all\"", "\"keep\""),
            "plans/s.toml:4: expected policies: each one once");
  EXPECT_EQ(error("\"offload-all\"", "1"), "plans/s.toml:4: expected policies: a list of strings");
  EXPECT_EQ(error("offload-all", "magic"),
            "plans/s.toml:4: expected policies: " + list_of_policies());
  EXPECT_EQ(error("adamw", "lion"),
            "plans/s.toml:5: expected optimizer: none, sgd, momentum, adam or adamw");
  EXPECT_EQ(error("= 4", "= 0"),
            "plans/s.toml:6: expected microbatches: an integer from 1 to 4096");
  EXPECT_EQ(error("program = \"gpt2\"\n", ""), "plans/s.toml: expected a key \"program\"");
}

// Tables in tables once ended the stack.
TEST(ScenarioTest, AKeyOfManyPartsIsRefused) {
  std::string parts = "a";
  for (int i = 1; i < 100'000; ++i) parts += ".a";
  EXPECT_EQ(error("budget", parts),
            "plans/s.toml: expected at most 1000 dots: a key has at most one");
  EXPECT_EQ(error("budget", parts.substr(0, 1999)),
            "plans/s.toml:3: unknown key \"" + parts.substr(0, 1999) + "\"");
}

TEST(ScenarioTest, WhatShipsIsReadable) {
  const std::vector<std::string> names = list_shipped("plans", ".toml");
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_NO_THROW(find_hardware(find_scenario(name).hardware)) << name;
  }
}

}  // namespace
}  // namespace ferry
