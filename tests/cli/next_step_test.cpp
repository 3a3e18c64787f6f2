// The lines that `ferry plan` ends with can be typed, and they carry out the plan.
#include "cli/next_step.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class NextStepTest : public PlanFolder {
 protected:
  std::vector<std::string> steps(const std::string& typed) {
    return nlohmann::json::parse(ferry(typed + " --json").out)["next_steps"];
  }
};

TEST_F(NextStepTest, TheCommandThatIsToldWritesThePlan) {
  const std::string typed = "plan gpt2 --card rtx4090 --budget 8GiB --policy offload --unchecked";
  const std::vector<std::string> told = steps(typed);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], "ferry " + typed + " --json -o gpt2.plan");
  EXPECT_EQ(told[1], "with torch_ferry.execute(\"gpt2.plan\"): loss = …; then loss.backward()");
  EXPECT_EQ(told[2], "Trainer(…, callbacks=[OffloadCallback(plan=\"gpt2.plan\")])");
  EXPECT_EQ(ferry(told[0].substr(6)).code, kOk);
  EXPECT_TRUE(std::filesystem::exists(path("gpt2.plan")));
}

TEST_F(NextStepTest, OfAPlanThatWasWrittenTheFileIsNamed) {
  const Result result =
      ferry("plan gpt2 --card rtx4090 --budget 8GiB --policy offload --unchecked -o mine.plan");
  EXPECT_NE(result.out.find("\nTo train like this, on the command line and then in Python:\n"
                            "  with torch_ferry.execute(\"mine.plan\"): "),
            std::string::npos)
      << result.out;
}

// Where modules that call no checkpoint were recomputed, somebody would have to edit them.
TEST_F(NextStepTest, AModelThatNobodyEditsIsPlannedWithoutModules) {
  const std::string typed = "plan gpt2 --card rtx4090 --budget 6200MiB --unchecked --no-spans";
  const std::vector<std::string> told = steps(typed);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0], "ferry " + typed + " --json --no-modules -o gpt2.plan");
  const std::string asked =
      "plan gpt2 --card rtx4090 --budget 6400MiB --unchecked --policy checkpoint";
  const std::vector<std::string> edited = steps(asked);
  ASSERT_EQ(edited.size(), 4U);
  EXPECT_EQ(edited[0].substr(0, 52), "# the model has to call torch_ferry.checkpoint for e");
  EXPECT_EQ(edited[1], "ferry " + asked + " --json -o gpt2.plan");
}

TEST_F(NextStepTest, NothingIsToTypeWhereNothingFitsOrAllIsKept) {
  EXPECT_TRUE(steps("plan gpt2 --card rtx4090 --policy keep --unchecked").empty());
  EXPECT_TRUE(steps("plan gpt2 --card rtx4090 --budget 1GiB --policy offload --unchecked").empty());
}

TEST_F(NextStepTest, WordsAreQuotedWhereAShellReadsThemOtherwise) {
  EXPECT_EQ(quoted("a100-40,:=.toml"), "a100-40,:=.toml");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("my model's.jsonl"), "'my model'\\''s.jsonl'");
}

}  // namespace
}  // namespace ferry::cli
