// Plans with spans of operators, as the users of `ferry plan` and `ferry simulate` meet them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/exit_codes.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class PlanSpansTest : public PlanFolder {};

TEST_F(PlanSpansTest, APlanWithSpansIsSimulated) {
  const std::string asked = "plan unet --hardware h100 --budget 1300MiB --policy best ";
  const Result planned = ferry(asked + "--json -o unet.plan");
  ASSERT_EQ(planned.code, kOk) << planned.err;
  EXPECT_NE(read("unet.plan").find("\"spans\""), std::string::npos);
  const std::string run = "simulate unet --hardware h100 --budget 1300MiB --plan unet.plan --json";
  EXPECT_EQ(nlohmann::json::parse(ferry(run).out)["rows"][0]["step_ns"],
            nlohmann::json::parse(planned.out)["rows"][0]["step_ns"]);
  EXPECT_NE(ferry(asked).out.find("best: recompute the operators "), std::string::npos);
}

TEST_F(PlanSpansTest, SpansCanBeLeftOut) {
  const Result planned =
      ferry("plan unet --hardware h100 --budget 1300MiB --policy best --no-spans -o plain.plan");
  ASSERT_EQ(planned.code, kOk) << planned.err;
  EXPECT_EQ(read("plain.plan").find("\"spans\""), std::string::npos);
}

TEST_F(PlanSpansTest, SpansOfOtherOperatorsAreRefused) {
  ASSERT_EQ(ferry("plan unet --hardware h100 --budget 1300MiB --policy best -o unet.plan").code,
            kOk);
  std::string text = read("unet.plan");
  const std::string name = "\"first_op\":\"aten.";
  text.replace(text.find(name), name.size(), "\"first_op\":\"other.");
  write("unet.plan", text);
  const Result run = ferry("simulate unet --hardware h100 --plan unet.plan");
  EXPECT_EQ(run.code, kUsage);
  EXPECT_NE(run.err.find(" in the program, not other."), std::string::npos) << run.err;
}

}  // namespace
}  // namespace ferry::cli
