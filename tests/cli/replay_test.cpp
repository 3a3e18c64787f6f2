// `ferry replay` as its users meet it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/decision_log.h"
#include "formats/plan_file.h"
#include "formats/plan_options.h"
#include "formats/program_file.h"
#include "plan/mix.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"
#include "tests/cli/console/shell.h"
#include "tests/cli/console/terminal.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

// A folder with a step, and the log of two runs of it.
class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest()
      : folder_(fs::path(::testing::TempDir()) / ("ferry_replay_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    const Program program = test::chain({});
    write_program(folder_ / "step.jsonl", program);
    log_.options.min_bytes = 0;
    log_.options.window_tensors = 1;
    sim::SimulationOptions options;
    options.offload = log_.options;
    options.offload->log = [this](const Decision& each) { log_.decisions.push_back(each); };
    sim::simulate(program, find_hardware("h100"), options);
    run_size_ = log_.decisions.size();
    for (std::size_t i = 0; i < run_size_; ++i) {
      log_.decisions.push_back(log_.decisions[i]);
      log_.decisions.back().run = 2;
    }
  }
  ~ReplayTest() override { fs::remove_all(folder_); }

  Result replay(const std::string& more = "") {
    write_decision_log(folder_ / "run.jsonl", log_);
    return shell(std::string(FERRY_PROGRAM) + " replay " + (folder_ / "step.jsonl").string() +
                     " --decisions " + (folder_ / "run.jsonl").string() + " " + more,
                 (folder_ / "result").string());
  }

  fs::path folder_;
  DecisionLog log_;
  std::size_t run_size_ = 0;
};

TEST_F(ReplayTest, OnATerminalItSaysHowFarItIs) {
  EXPECT_EQ(replay().code, kOk);  // and writes the log
  Terminal shown("exec '" FERRY_PROGRAM "' replay " + (folder_ / "step.jsonl").string() +
                 " --decisions " + (folder_ / "run.jsonl").string());
  EXPECT_EQ(shown.end(), kOk);
  EXPECT_NE(shown.shown().find("\r1 decisions\033[K"), std::string::npos) << shown.shown();
  EXPECT_NE(shown.shown().find("\r\033[K"), std::string::npos) << shown.shown();
}

TEST_F(ReplayTest, TheSameDecisionsAreZero) {
  ASSERT_GT(run_size_, 4u);
  const Result result = replay();
  EXPECT_EQ(result.code, kOk) << result.out << result.err;
  EXPECT_EQ(result.out, "the same: 2 runs of " + std::to_string(run_size_) + " decisions\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(ReplayTest, EveryChangedDecisionIsFoundWhereItIs) {
  for (const std::size_t at : {std::size_t{0}, run_size_ - 1, run_size_ + 2}) {
    const Decision before = log_.decisions[at];
    log_.decisions[at].bytes += 1;
    const Result result = replay("--json");
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(result.code, kDiffers);
    EXPECT_EQ(json["same"], false);
    EXPECT_EQ(json["difference"]["run"], at < run_size_ ? 1 : 2);
    EXPECT_EQ(json["difference"]["index"], at % run_size_);
    EXPECT_EQ(json["difference"]["line"], at + 2);
    EXPECT_EQ(json["difference"]["real"]["bytes"], before.bytes + 1);
    EXPECT_EQ(json["difference"]["simulated"]["bytes"], before.bytes);
    log_.decisions[at] = before;
  }
}

TEST_F(ReplayTest, AShorterAndALongerRunDiffer) {
  const Decision last = log_.decisions.back();
  log_.decisions.pop_back();
  const auto shorter = nlohmann::json::parse(replay("--json").out);
  EXPECT_EQ(shorter["difference"]["index"], run_size_ - 1);
  EXPECT_TRUE(shorter["difference"]["real"].is_null());
  EXPECT_TRUE(shorter["difference"]["line"].is_null());
  log_.decisions.push_back(last);
  log_.decisions.push_back(last);
  const auto longer = nlohmann::json::parse(replay("--json").out);
  EXPECT_EQ(longer["difference"]["index"], run_size_);
  EXPECT_TRUE(longer["difference"]["simulated"].is_null());
  log_.decisions.clear();
  EXPECT_EQ(replay().code, kDiffers);
}

TEST_F(ReplayTest, PeopleSeeTheDecisionItsTensorAndWhatIsAround) {
  log_.decisions[2].kind = DecisionKind::kReturn;
  const Result result = replay();
  EXPECT_EQ(result.code, kDiffers);
  EXPECT_EQ(result.out.rfind("different: run 1, decision 2 (", 0), 0u) << result.out;
  for (const char* piece :
       {"run.jsonl:4)\n  both       pack of saved tensor 0",
        "\n> real       return of saved tensor", "\n> simulated  ", " bytes (bf16 ["}) {
    EXPECT_NE(result.out.find(piece), std::string::npos) << piece << " in\n" << result.out;
  }
}

TEST_F(ReplayTest, OtherOptionsDecideOtherwise) {
  log_.options.prefetch_bytes = 0;
  log_.options.hold_bytes = 0;
  EXPECT_EQ(replay().code, kDiffers);
  log_.options.offload = {false};
  const Result nothing = replay();
  EXPECT_EQ(nothing.code, kDiffers);
  EXPECT_NE(nothing.out.find("> simulated  nothing more"), std::string::npos) << nothing.out;
}

// The first and the last of three segments are recomputed; the first one's input moves, and of
// what the last one saves, the end.
class ReplayOfSegmentsTest : public ReplayTest {
 protected:
  ReplayOfSegmentsTest() {
    const Program program = test::segmented({{}, {}, {}});
    const Hardware hardware = find_hardware("h100");
    const plan::Survey survey = plan::survey(program, hardware);
    plan::Mix mix = plan::keep_all(survey);
    mix.recompute = {true, false, true};
    for (const std::size_t pack : {0, 1, 2, 6, 7}) mix.packs[pack] = PlanChoice::kRecompute;
    mix.packs[8] = PlanChoice::kOffload;
    mix.input_moves[0] = {true};
    plan::settle(mix, survey, 0);
    Plan plan;
    plan.options = plan_options(log_.options);
    plan.segments = plan::plan_segments(mix, {"h.0", "h.1", "h.2"});
    plan.entries = plan::plan_entries(survey, mix);
    write_program(folder_ / "step.jsonl", program);
    write_plan(folder_ / "p.json", plan);
    log_.options = planned_options(plan);
    log_.decisions.clear();
    sim::SimulationOptions options;
    options.offload = log_.options;
    options.offload->log = [this](const Decision& each) { log_.decisions.push_back(each); };
    options.segments = planned_segments(plan);
    sim::simulate(program, hardware, options);
    run_size_ = log_.decisions.size();
  }
  Result replay_plan(const std::string& more = "") {
    return replay("--plan " + (folder_ / "p.json").string() + " " + more);
  }
  // Of the run's recomputes, by what they recompute.
  Decision& recompute_of(std::uint64_t segment) {
    return *std::find_if(log_.decisions.begin(), log_.decisions.end(), [&](const Decision& each) {
      return each.kind == DecisionKind::kRecompute && each.pack == segment;
    });
  }
};

TEST_F(ReplayOfSegmentsTest, TheSameDecisionsAreZero) {
  const Result result = replay_plan();
  EXPECT_EQ(result.code, kOk) << result.out << result.err;
  EXPECT_EQ(result.out, "the same: 1 run of " + std::to_string(run_size_) + " decisions\n");
  EXPECT_EQ(
      std::count_if(log_.decisions.begin(), log_.decisions.end(),
                    [](const Decision& each) { return each.kind == DecisionKind::kRecompute; }),
      2);
}

TEST_F(ReplayOfSegmentsTest, AnotherSegmentIsNamed) {
  recompute_of(1).pack = 0;
  const Result result = replay_plan();
  EXPECT_EQ(result.code, kDiffers);
  for (const char* piece : {"> real       recompute of segment 0 (h.0)\n",
                            "> simulated  recompute of segment 1 (h.2)\n"}) {
    EXPECT_NE(result.out.find(piece), std::string::npos) << piece << " in\n" << result.out;
  }
  const auto json = nlohmann::json::parse(replay_plan("--json").out);
  EXPECT_EQ(json["difference"]["real"]["decision"], "recompute");
  EXPECT_EQ(json["difference"]["real"]["pack"], 0);
  EXPECT_EQ(json["difference"]["simulated"]["pack"], 1);
}

TEST_F(ReplayOfSegmentsTest, WhatASegmentPassesOnIsATensorOfIts) {
  const auto last = std::find_if(log_.decisions.rbegin(), log_.decisions.rend(),
                                 [](auto& each) { return each.kind == DecisionKind::kUnpack; });
  const auto first = std::find_if(log_.decisions.begin(), log_.decisions.end(),
                                  [](auto& each) { return each.kind == DecisionKind::kUnpack; });
  ASSERT_NE(first->pack, last->pack);
  first->bytes += 1;
  const Result result = replay_plan();
  EXPECT_EQ(result.code, kDiffers);
  EXPECT_NE(result.out.find("of DownBackward)"), std::string::npos) << result.out;
  first->bytes -= 1;
  last->bytes += 1;
  EXPECT_NE(replay_plan().out.find("of checkpoint)"), std::string::npos);
}

TEST_F(ReplayOfSegmentsTest, ItsPlanIsNeeded) {
  const auto first = std::find_if(log_.decisions.begin(), log_.decisions.end(),
                                  [](auto& each) { return each.kind == DecisionKind::kRecompute; });
  const Result result = replay();
  EXPECT_EQ(result.code, kUsage);
  EXPECT_EQ(result.out, "");
  const auto line = std::to_string(first - log_.decisions.begin() + 2);
  EXPECT_NE(result.err.find("run.jsonl:" + line + ": this run recomputed: expected its plan"),
            std::string::npos)
      << result.err;
}

TEST_F(ReplayOfSegmentsTest, AnotherProgramsPlanIsRefused) {
  write_program(folder_ / "step.jsonl", test::segmented({{}, {}}));
  const Result result = replay_plan();
  EXPECT_EQ(result.code, kUsage);
  EXPECT_NE(result.err.find("p.json: the plan has 3 segments, the program 2"), std::string::npos)
      << result.err;
}

TEST_F(ReplayTest, BadInputIsTwo) {
  EXPECT_EQ(replay("--plan no-such-plan").code, kUsage);
  EXPECT_EQ(replay("--card no-such-card").code, kUsage);
  log_.decisions[0].bytes = -1;
  const Result result = replay();
  EXPECT_EQ(result.code, kUsage);
  EXPECT_NE(result.err.find("run.jsonl:2: "), std::string::npos) << result.err;
}

}  // namespace
}  // namespace ferry::cli
