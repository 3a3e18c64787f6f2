// A sweep that is stopped, killed, or whose items crash or take too long.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/cli/console/terminal.h"
#include "tests/cli/sweep/stop_folder.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

using SweepStopTest = StopFolder;

TEST_F(SweepStopTest, CtrlCLeavesWholeLinesAndTheSameCommandGoesOn) {
  Terminal sweep(this->sweep("--jobs 1"));
  ASSERT_TRUE(sweep.shows("2/3  items, ")) << sweep.shown();
  sweep.press_ctrl_c();
  EXPECT_EQ(sweep.end(), 128 + SIGINT);
  EXPECT_NE(sweep.shown().find("stopped by SIGINT after 2 of 3 items"), std::string::npos)
      << sweep.shown();
  EXPECT_EQ(lines(), 2u);
  EXPECT_TRUE(results().ends_with("\"}\n"));
  EXPECT_EQ(files(), 2u);  // and no other
}

TEST_F(SweepStopTest, SigtermDoesAsWell) {
  Terminal sweep(this->sweep("--jobs 1"));
  ASSERT_TRUE(sweep.shows("2/3  items, ")) << sweep.shown();
  const pid_t child = wait_for_child_of(sweep.process());
  ::kill(sweep.process(), SIGTERM);
  EXPECT_EQ(sweep.end(), 128 + SIGTERM);
  EXPECT_EQ(lines(), 2u);
  EXPECT_EQ(::kill(child, 0), -1);  // it ended with the sweep
}

TEST_F(SweepStopTest, WhatWasKilledLeavesItsLinesAndNoChild) {
  Terminal sweep(this->sweep("--jobs 1"));
  ASSERT_TRUE(sweep.shows("2/3  items, ")) << sweep.shown();
  const pid_t child = wait_for_child_of(sweep.process());
  ::kill(sweep.process(), SIGKILL);
  EXPECT_EQ(sweep.end(), -SIGKILL);
  EXPECT_EQ(lines(), 2u);
  for (int i = 0; i < 5000 && fs::exists("/proc/" + std::to_string(child) + "/exe"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(child) + "/exe"));
}

TEST_F(SweepStopTest, ACrashCostsItsItemAndIsToldWithItsCause) {
  Terminal sweep(this->sweep("--jobs 1"));
  ASSERT_TRUE(sweep.shows("2/3  items, ")) << sweep.shown();
  ::kill(wait_for_child_of(sweep.process()), SIGSEGV);
  EXPECT_EQ(sweep.end(), 1);
  EXPECT_EQ(lines(), 3u);
  EXPECT_EQ(last()["outcome"], "crashed");
  EXPECT_EQ(last()["cause"], "signal 11 (Segmentation fault)");
  EXPECT_NE(sweep.shown().find("llama3-8b on h100, budget, budget 50GiB: crashed: signal 11"),
            std::string::npos)
      << sweep.shown();
}

TEST_F(SweepStopTest, ALateItemCostsItselfAndMayBeRunAgain) {
  Terminal late(sweep("--limit 0.1"));
  EXPECT_EQ(late.end(), 1);
  EXPECT_EQ(last()["outcome"], "late");
  EXPECT_EQ(lines(), 3u);
  Terminal still(sweep());
  EXPECT_EQ(still.end(), 1);
  EXPECT_EQ(last()["outcome"], "late");
  Terminal again(sweep("--again"));
  EXPECT_EQ(again.end(), 0) << again.shown();
  EXPECT_EQ(last()["outcome"], "fits");
}

TEST_F(SweepStopTest, TwoSweepsDoNotWriteOneFile) {
  Terminal one(sweep("--jobs 1"));
  ASSERT_TRUE(one.shows("2/3  items, ")) << one.shown();
  Terminal two(sweep());
  EXPECT_EQ(two.end(), 2);
  EXPECT_NE(two.shown().find("expected a file that no other sweep is writing"), std::string::npos)
      << two.shown();
}

}  // namespace
}  // namespace ferry::cli
