// The progress line: on a terminal alone, coloured there unless NO_COLOR says not to.
#include "cli/console/progress.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/console/shell.h"
#include "tests/cli/console/terminal.h"

namespace ferry::cli {
namespace {

const std::string kPlan =
    "'" FERRY_PROGRAM "' plan gpt2 --card rtx4090 --unchecked --policy prefetch";
constexpr const char* kGreen = "\033[32m";

TEST(ProgressTest, OnATerminalThereIsALineWhichIsGoneAtTheEnd) {
  Terminal plan("unset NO_COLOR; exec " + kPlan);
  EXPECT_EQ(plan.end(), kOk);
  EXPECT_NE(plan.shown().find(kGreen), std::string::npos) << plan.shown();
  const std::size_t drawn = plan.shown().rfind("  prefetch\033[K");
  const std::size_t gone = plan.shown().find("\r\033[K", drawn);
  EXPECT_NE(gone, std::string::npos) << plan.shown();
  EXPECT_LT(gone, plan.shown().find("gpt2 on rtx4090")) << plan.shown();
}

TEST(ProgressTest, NoColorIsRespected) {
  Terminal plan("NO_COLOR=1 exec " + kPlan);
  EXPECT_EQ(plan.end(), kOk);
  EXPECT_NE(plan.shown().find("  prefetch\033[K"), std::string::npos) << plan.shown();
  EXPECT_EQ(plan.shown().find(kGreen), std::string::npos) << plan.shown();
}

TEST(ProgressTest, OnAPipeThereIsNothing) {
  const Result plan =
      shell(kPlan, ::testing::TempDir() + "/ferry_progress_" + std::to_string(getpid()));
  EXPECT_EQ(plan.code, kOk);
  EXPECT_EQ(plan.err, "");
}

}  // namespace
}  // namespace ferry::cli
