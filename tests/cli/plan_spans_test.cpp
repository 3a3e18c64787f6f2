// Plans with spans of operators, as the users of `ferry plan` and `ferry simulate` meet them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class PlanSpansTest : public PlanFolder {};

TEST_F(PlanSpansTest, APlanWithSpansIsSimulated) {
  const std::string asked = "plan unet --card h100 --budget 1350MiB --policy best --no-expandable ";
  const Result planned = ferry(asked + "--json -o unet.plan");
  ASSERT_EQ(planned.code, kOk) << planned.err;
  EXPECT_NE(read("unet.plan").find("\"spans\""), std::string::npos);
  const std::string run = "simulate unet --card h100 --budget 1350MiB --plan unet.plan --json";
  EXPECT_EQ(nlohmann::json::parse(ferry(run).out)["rows"][0]["step_ns"],
            nlohmann::json::parse(planned.out)["rows"][0]["step_ns"]);
  EXPECT_NE(ferry(asked).out.find("best: recompute the operators "), std::string::npos);
}

// The best plan may be one under another allocator than the usual: table, JSON, the answer and the
// plan's file say which, and a simulation of the file takes it.
TEST_F(PlanSpansTest, APlanUnderExpandableSegmentsSaysSoAndIsSimulatedSo) {
  const std::string asked = "plan unet --card h100 --budget 1200MiB --policy best ";
  const Result planned = ferry(asked + "--json -o unet.plan");
  ASSERT_EQ(planned.code, kOk) << planned.err;
  const auto json = nlohmann::json::parse(planned.out);
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["alloc_conf"], "");
  EXPECT_EQ(json["rows"][1]["policy"], "best-expandable");
  EXPECT_EQ(json["rows"][1]["alloc_conf"], "expandable_segments:True");
  EXPECT_LT(json["rows"][1]["gap"], json["rows"][0]["gap"]);
  EXPECT_EQ(json["written"]["policy"], "best-expandable");
  EXPECT_NE(json["answer"].get<std::string>().find(
                "Train with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True in the environment; "
                "without it, use best: "),
            std::string::npos)
      << json["answer"];
  EXPECT_NE(read("unet.plan").find("\"alloc_conf\": \"expandable_segments:True\""),
            std::string::npos);
  const std::string run = "simulate unet --card h100 --budget 1200MiB --plan unet.plan";
  const auto row = nlohmann::json::parse(ferry(run + " --json").out)["rows"][0];
  EXPECT_EQ(row["step_ns"], json["rows"][1]["step_ns"]);
  EXPECT_EQ(row["device_reserved_bytes"], json["rows"][1]["device_reserved_bytes"]);
  EXPECT_EQ(row["alloc_conf"], "expandable_segments:True");
  EXPECT_NE(ferry(run).out.find(
                "best-expandable: with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"),
            std::string::npos);
  const Result other = ferry(run + " --alloc-conf max_split_size_mb:64");
  EXPECT_NE(other.err.find("made for the allocator's options \"expandable_segments:True\", run "
                           "with \"max_split_size_mb:64\""),
            std::string::npos)
      << other.err;
  const Result alone = ferry(asked + "--no-expandable --json");
  EXPECT_EQ(nlohmann::json::parse(alone.out)["rows"].size(), 1u);
}

TEST_F(PlanSpansTest, SpansCanBeLeftOut) {
  const Result planned =
      ferry("plan unet --card h100 --budget 1300MiB --policy best --no-spans -o plain.plan");
  ASSERT_EQ(planned.code, kOk) << planned.err;
  EXPECT_EQ(read("plain.plan").find("\"spans\""), std::string::npos);
}

TEST_F(PlanSpansTest, SpansOfOtherOperatorsAreRefused) {
  ASSERT_EQ(ferry("plan unet --card h100 --budget 1300MiB --policy best --no-modules "
                  "-o unet.plan")
                .code,
            kOk);
  std::string text = read("unet.plan");
  const std::string name = "\"first_op\":\"aten.";
  text.replace(text.find(name), name.size(), "\"first_op\":\"other.");
  write("unet.plan", text);
  const Result run = ferry("simulate unet --card h100 --plan unet.plan");
  EXPECT_EQ(run.code, kUsage);
  EXPECT_NE(run.err.find(" in the program, not other."), std::string::npos) << run.err;
}

}  // namespace
}  // namespace ferry::cli
