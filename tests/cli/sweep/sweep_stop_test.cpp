// A sweep that is stopped, killed, or whose items crash or take too long.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "formats/text_file.h"
#include "tests/cli/terminal.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

// A process whose parent this is.
std::optional<pid_t> child_of(pid_t parent) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string text;
    std::getline(in, text);
    const std::size_t end = text.rfind(") ");  // of the program's name
    if (end == std::string::npos || text.size() < end + 4) continue;
    if (std::atoi(text.c_str() + end + 4) == parent) return std::atoi(name.c_str());
  }
  return std::nullopt;
}

pid_t wait_for_child_of(pid_t parent) {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (const auto child = child_of(parent)) return *child;
  }
}

// Two items that take seconds, behind one that does not.
class SweepStopTest : public ::testing::Test {
 protected:
  SweepStopTest()
      : folder_(fs::path(::testing::TempDir()) / ("ferry_sweep_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "s.toml") << R"(programs = ["unet", "llama3-8b"]
hardware = ["h100"]
budgets = ["50GiB"]
policies = ["keep", "best"]
[[skip]]
programs = ["unet"]
policies = ["best"]
)";
  }
  ~SweepStopTest() override { fs::remove_all(folder_); }

  std::string sweep(const std::string& options = "") const {
    return "cd '" + folder_.string() + "' && exec '" FERRY_PROGRAM "' sweep s.toml -o r.jsonl " +
           options;
  }
  std::string results() const { return read_file(folder_ / "r.jsonl"); }
  std::size_t lines() const {
    const std::string text = results();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Of the last line.
  nlohmann::json last() const {
    const std::string text = results();
    return nlohmann::json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const fs::path folder_;
};

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
  EXPECT_NE(sweep.shown().find("llama3-8b on h100, best, budget 50GiB: crashed: signal 11"),
            std::string::npos)
      << sweep.shown();
}

TEST_F(SweepStopTest, ALateItemCostsItselfAndMayBeRunAgain) {
  Terminal late(sweep("--limit 0.5"));
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
