// The modules that own the peak, in `ferry plan` and `ferry simulate`.
#include "cli/peak_owners.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class PeakOwnersTest : public PlanFolder {};

const std::string kKeep = " gpt2 --card rtx4090 --policy keep ";

TEST_F(PeakOwnersTest, TheyAddUpToThePeakOfTheBestRow) {
  for (const std::string command : {"simulate", "plan"}) {
    const Result result = ferry(command + kKeep + "--json");
    ASSERT_EQ(result.code, kOk) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    const auto& owners = json["peak_owners"];
    EXPECT_EQ(owners["policy"], "keep");
    std::int64_t bytes = 0, last = owners["owners"][0]["bytes"];
    for (const auto& owner : owners["owners"]) {
      bytes += owner["bytes"].get<std::int64_t>();
      EXPECT_LE(owner["bytes"], last);
      last = owner["bytes"];
    }
    EXPECT_EQ(bytes, json["rows"][0]["device_peak_bytes"]);
  }
}

// GELU saves its input: in each of 12 layers 8 x 1024 x 3072 numbers of two bytes, and what it
// computes is saved by the product after it.
TEST_F(PeakOwnersTest, LayersAreOneLineWithTheirCount) {
  const auto json = nlohmann::json::parse(ferry("simulate" + kKeep + "--json").out);
  bool found = false;
  for (const auto& owner : json["peak_owners"]["owners"]) {
    if (owner["modules"] != "transformer.h.*.mlp.c_fc" || owner["kind"] != "activations") continue;
    found = true;
    EXPECT_EQ(owner["count"], 12);
    EXPECT_EQ(owner["bytes"], std::int64_t{12} * 8 * 1024 * 3072 * 2);
  }
  EXPECT_TRUE(found);
  const std::string text = ferry("simulate" + kKeep).out;
  EXPECT_NE(text.find("keep at its peak of "), std::string::npos) << text;
  EXPECT_NE(text.find("12  activations  transformer.h.*.mlp.c_fc\n"), std::string::npos) << text;
}

// The loss is a function of the script. What its backward makes belongs to its node.
TEST_F(PeakOwnersTest, WhatHasNoModuleIsNamedByItsOperator) {
  const std::string text = ferry("simulate" + kKeep).out;
  EXPECT_NE(text.find("  temporaries  (no module: LogSoftmaxBackward0)\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("  activations  (no module: aten._log_softmax)\n"), std::string::npos)
      << text;
}

TEST_F(PeakOwnersTest, AProgramWithoutModulesHasNoTable) {
  const std::string keep = "simulate chain.jsonl --card tiny.toml --policy keep";
  EXPECT_EQ(ferry(keep).out.find("by module"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(ferry(keep + " --json").out)["peak_owners"].is_null());
}

}  // namespace
}  // namespace ferry::cli
