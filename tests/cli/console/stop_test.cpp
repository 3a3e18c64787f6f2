// Ctrl-C: what was done so far is told, and no half of a file remains.
#include "cli/console/stop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tests/cli/console/terminal.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kInterrupted = 130;

class StopTest : public ::testing::Test {
 protected:
  StopTest()
      : folder_(fs::path(::testing::TempDir()) / ("ferry_stop_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~StopTest() override { fs::remove_all(folder_); }

  std::string ferry(const std::string& arguments) const {
    return "cd '" + folder_.string() + "' && exec '" FERRY_PROGRAM "' " + arguments;
  }
  bool is_empty() const { return fs::is_empty(folder_); }

  const fs::path folder_;
};

// Until the other end has read all that was written.
void wait_until_read(int pipe) {
  for (int unread = 1; unread > 0; std::this_thread::yield()) {
    ASSERT_EQ(::ioctl(pipe, FIONREAD, &unread), 0);
  }
}

TEST_F(StopTest, CheckTellsWhatItJudgedOfAPipeThatStaysOpen) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Terminal check(ferry("check - < pipe"));
  const int log = ::open(pipe.c_str(), O_WRONLY);
  const std::string race = R"({"op":"kernel","stream":"main","reads":[],"writes":["x"]}
{"op":"kernel","stream":"side","reads":["x"],"writes":[]}
)";
  // What comes second is read when what came first is judged.
  for (const std::string& text : {race, std::string("\n")}) {
    ASSERT_EQ(::write(log, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    wait_until_read(log);
  }
  check.press_ctrl_c();
  EXPECT_EQ(check.end(), kInterrupted);
  ::close(log);
  EXPECT_NE(check.shown().find("stdin:2: read after write of \"x\""), std::string::npos)
      << check.shown();
  EXPECT_NE(check.shown().find("ferry: stopped by SIGINT after "), std::string::npos)
      << check.shown();
}

TEST_F(StopTest, PlanTellsTheRowsThatAreReadyAndWritesNoPlan) {
  Terminal plan(ferry("plan llama3-8b --card h100 --budget 40GiB --policy all -o best.plan"));
  ASSERT_TRUE(plan.shows("  prefetch")) << plan.shown();  // the first search, after three rows
  plan.press_ctrl_c();
  EXPECT_EQ(plan.end(), kInterrupted);
  EXPECT_NE(plan.shown().find("\noffload-all "), std::string::npos) << plan.shown();
  EXPECT_NE(plan.shown().find(" of 10 policies"), std::string::npos) << plan.shown();
  EXPECT_TRUE(is_empty());
}

// The search for `best` has found something when it has tried a few.
TEST_F(StopTest, PlanTellsTheBestByThenAndItsGap) {
  Terminal plan(ferry("plan llama3-8b --card h100 --budget 50GiB --policy best --optimizer none"));
  ASSERT_TRUE(plan.shows(" of keep so far")) << plan.shown();
  plan.press_ctrl_c();
  EXPECT_EQ(plan.end(), kInterrupted);
  EXPECT_NE(plan.shown().find("\nbest  "), std::string::npos) << plan.shown();
  EXPECT_NE(plan.shown().find(" of keep; no plan is below "), std::string::npos) << plan.shown();
  EXPECT_NE(plan.shown().find("stopped by SIGINT"), std::string::npos) << plan.shown();
}

TEST_F(StopTest, TheCurveIsTheBestByThen) {
  Terminal plan(ferry("plan llama3-8b --card h100 --pareto"));
  ASSERT_TRUE(plan.shows(" best")) << plan.shown();
  plan.press_ctrl_c();
  EXPECT_EQ(plan.end(), kInterrupted);
  EXPECT_NE(plan.shown().find("stopped by SIGINT after "), std::string::npos) << plan.shown();
}

TEST_F(StopTest, SimulateLeavesNoHalfOfALog) {
  Terminal run(
      ferry("simulate llama3-8b --card h100 --policy offload --microbatches 64 --log run.jsonl"));
  while (!run.has_open(folder_)) std::this_thread::yield();  // until the log is begun
  run.press_ctrl_c();
  EXPECT_EQ(run.end(), kInterrupted);
  EXPECT_NE(run.shown().find("stopped by SIGINT after 0 of 1 policies"), std::string::npos)
      << run.shown();
  EXPECT_TRUE(is_empty());
}

TEST_F(StopTest, WhoIgnoresCtrlCGoesOnIgnoringIt) {
  Terminal run("trap '' INT; " + ferry("plan gpt2 --card rtx4090 --policy prefetch"));
  ASSERT_TRUE(run.shows("  prefetch")) << run.shown();
  run.press_ctrl_c();
  EXPECT_EQ(run.end(), kOk) << run.shown();
}

}  // namespace
}  // namespace ferry::cli
