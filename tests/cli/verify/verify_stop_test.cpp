// `ferry verify` on a terminal, and Ctrl-C.
#include <gtest/gtest.h>

#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/console/terminal.h"

namespace ferry::cli {
namespace {

constexpr int kInterrupted = 130;

void expect_told(const std::string& arguments, const std::string& until, const std::string& words) {
  std::string command = "exec '" FERRY_PROGRAM "' verify --seed 5 ";
  command += arguments;
  Terminal verify(command);
  ASSERT_TRUE(verify.shows(until)) << verify.shown();
  verify.press_ctrl_c();
  EXPECT_EQ(verify.end(), kInterrupted);
  EXPECT_NE(verify.shown().find("ferry: stopped by SIGINT after "), std::string::npos)
      << verify.shown();
  EXPECT_NE(verify.shown().find(words), std::string::npos) << verify.shown();
}

TEST(VerifyStopTest, ACampaignTellsHowManyProgramsItRanAndItsSeed) {
  expect_told("--programs 100000000", "  programs, ", " programs of seed 5");
  expect_told("--seconds 100000", " programs, ", "no oracle objects so far");
}

TEST(VerifyStopTest, TablesShowTheRowsThatAreReady) {
  expect_told("--mutants --programs 100000000", "  ", " mutants of seed 5");
  expect_told("--schedulers --programs 100000000", "  ", " schedulers of seed 5");
}

// Ctrl-C made an exit code of 130 of what had been found by then. With this seed and one program a
// mutant the first row survives, which is wrong.
TEST(VerifyStopTest, WhatWasWrongBeforeCtrlCIsTheExitCode) {
  Terminal verify("exec '" FERRY_PROGRAM "' verify --mutants --programs 1 --jobs 1 --seed 5");
  ASSERT_TRUE(verify.shows("  ")) << verify.shown();
  verify.press_ctrl_c();
  EXPECT_EQ(verify.end(), kViolated) << verify.shown();
}

}  // namespace
}  // namespace ferry::cli
