// `ferry calibrate` as its users meet it: what it measures is what `ferry plan` plans by.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "formats/text_file.h"
#include "real/train/exit_code.h"
#include "scenarios/hardware.h"
#include "scenarios/kernel_times.h"
#include "tests/cli/console/shell.h"

namespace ferry::real::calibrate {
namespace {

using cli::Result;
using nlohmann::json;

const std::string kModel = " gpt --layers 1 --width 32 --heads 2 --context 16 --batch 2 ";

class CalibrateTest : public ::testing::Test {
 protected:
  CalibrateTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("ferry_calibrate_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~CalibrateTest() override { std::filesystem::remove_all(folder_); }

  // In that folder.
  Result ferry(const std::string& arguments, const std::string& environment = "") const {
    return cli::shell(
        "cd '" + folder_.string() + "' && " + environment + " '" FERRY_PROGRAM "' " + arguments,
        (folder_ / "run").string());
  }
  void expect_refused(const std::string& arguments, int code, const std::string& message) const {
    const Result result = ferry("calibrate --small " + arguments);
    EXPECT_EQ(result.code, code) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with("ferry: ")) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "mine.toml")) << arguments;
  }
  // What was calibrated is what a capture of the same step is planned by.
  void expect_planned(const std::string& environment, const std::string& device) const {
    const Result captured =
        ferry("train" + kModel + device + " --threads 1 --capture step.jsonl", environment);
    ASSERT_EQ(captured.code, train::kOk) << captured.err;
    const Result planned =
        ferry("plan step.jsonl --card mine.toml --times mine.times.jsonl --policy keep --json");
    ASSERT_EQ(planned.code, train::kOk) << planned.err;
    const json times = json::parse(planned.out)["times"];
    EXPECT_GT(times["ops"], 20);
    EXPECT_EQ(times["measured"], times["ops"]);
  }

  const std::filesystem::path folder_;
};

TEST_F(CalibrateTest, WhatItMeasuresIsPlannedBy) {
  const Result result = ferry(
      "calibrate --small --threads 1 --rounds 2 --date 2026-01-02 --disk . -o mine.toml "
      "--times mine.times.jsonl --json" +
      kModel);
  ASSERT_EQ(result.code, train::kOk) << result.err;
  const json measured = json::parse(result.out);
  EXPECT_EQ(measured["threads"], 1);
  EXPECT_EQ(measured["host_tier"], "disk");
  EXPECT_EQ(measured["matmuls"].size(), 3u);
  for (const char* lane : {"d2h", "h2d"}) {
    std::size_t alone = 0;
    for (const json& copy : measured["copies"]) alone += copy["lane"] == lane && !copy["both"];
    EXPECT_EQ(alone, 6u) << lane;  // 1 KiB to 1 MiB
  }
  const Hardware hardware = read_hardware(folder_ / "mine.toml");
  EXPECT_NE(hardware.description.find("measured 2026-01-02"), std::string::npos);
  EXPECT_EQ(hardware.launch_ns, 0);
  const TimesTable table = read_times(folder_ / "mine.times.jsonl");
  EXPECT_EQ(table.times.size(), measured["kernel_times"]);
  EXPECT_EQ(table.device, measured["name"]);
  for (const auto& [signature, time] : table.times) EXPECT_GE(time.samples, 2) << signature;
  expect_planned("", "");
}

TEST_F(CalibrateTest, WithoutAModelItPrintsTheMachine) {
  const Result result = ferry("calibrate --small --threads 1 --rounds 1");
  ASSERT_EQ(result.code, train::kOk) << result.err;
  for (const char* word : {"matmul in bf16", "shortest kernel", "host block, cached", "h2d"}) {
    EXPECT_NE(result.out.find(word), std::string::npos) << word;
  }
}

TEST_F(CalibrateTest, BadOptionsAreRefused) {
  expect_refused("--times t.jsonl -o mine.toml", train::kUsage, "--times: expected with a model");
  expect_refused("--kernels k.json -o mine.toml gpt", train::kUsage, "--kernels: expected with");
  expect_refused("--date today -o mine.toml", train::kUsage, "--date: expected YYYY-MM-DD");
  expect_refused("--disk . --device cuda -o mine.toml", train::kUsage, "--disk: expected with");
  expect_refused("--device tpu", train::kUsage, "--device");
  expect_refused("--rounds 0", train::kUsage, "--rounds");
  expect_refused("vgg -o mine.toml", train::kUsage, "(ferry calibrate --help)");
  expect_refused("gpt --policy checkpoint -o mine.toml", train::kUsage, "--policy: expected none");
  expect_refused("gpt --microbatches 2 -o mine.toml", train::kUsage, "--microbatches: expected 1");
  expect_refused("-o nowhere/mine.toml", train::kResourceMissing, "nowhere/mine.toml");
  expect_refused("--disk nowhere -o mine.toml", train::kResourceMissing, "nowhere");
}

TEST_F(CalibrateTest, ItsHelpHasExamples) {
  const Result result = ferry("calibrate --help");
  EXPECT_EQ(result.code, train::kOk);
  EXPECT_NE(result.out.find("Examples:"), std::string::npos);
}

// bench/real/predicted.py: a row for each batch and policy, with what both worlds say of it. What
// it predicts of keep's memory is what the training needs, but for what the optimizer does. How
// much of what is moved still waits for its copy is the machine's to say, that day.
TEST_F(CalibrateTest, WhatIsPredictedStandsBesideWhatIsMeasured) {
  const Result result = cli::shell(
      "cd '" + folder_.string() +
          "' && python3 '" FERRY_SOURCE_DIR "/bench/real/predicted.py' '" FERRY_PROGRAM
          "' --options '--layers 2 --width 32 --heads 2 --context 32' --calibrate 2 --batches 2,3 "
          "--policies keep,offload,mixed --steps 3 --rounds 1 --small --json rows.json",
      (folder_ / "run").string());
  ASSERT_EQ(result.code, 0) << result.err;
  const json rows = json::parse(read_file(folder_ / "rows.json"))["rows"];
  ASSERT_EQ(rows.size(), 6u);
  for (const json& row : rows) {
    const json& times = row["times"];
    EXPECT_EQ(row["calibrated"], row["batch"] == 2);
    EXPECT_EQ(times["measured"].get<int>() + times["scaled"].get<int>(), times["ops"]);
    EXPECT_EQ(times["scaled"] == 0, row["batch"] == 2);
    EXPECT_GT(row["predicted_ns"], 0);
    EXPECT_GT(row["measured_step_ns"], row["measured_ns"]);
    const double peaks =
        row["predicted_peak_bytes"].get<double>() / row["measured_peak_bytes"].get<double>();
    if (row["policy"] == "keep") {
      EXPECT_NEAR(peaks, 1, 0.2) << row;
    }
    EXPECT_GT(peaks, 0) << row;
  }
}

#ifdef FERRY_PRELOADED_GPU_LIBRARY
// On a virtual GPU, whose operators run on the CPU: its times mean nothing, but all of it runs.
TEST_F(CalibrateTest, AGpuIsMeasuredOnItsStreams) {
  const std::string preloaded =
      "FERRY_PRELOADED_GPU=1 FERRY_PRELOADED_GPU_TEMPO=eager "
      "LD_PRELOAD='" FERRY_PRELOADED_GPU_LIBRARY "'";
  const Result result = ferry(
      "calibrate --small --device cuda --threads 1 --rounds 2 -o mine.toml --times "
      "mine.times.jsonl --json" +
          kModel,
      preloaded);
  ASSERT_EQ(result.code, train::kOk) << result.err;
  const json measured = json::parse(result.out);
  std::size_t pageable = 0;
  for (const json& copy : measured["copies"]) pageable += copy["memory"] == "pageable";
  EXPECT_GE(pageable, 12u);
  EXPECT_EQ(read_hardware(folder_ / "mine.toml").launch_ns, measured["issue"]["ns"]);
  expect_planned(preloaded, "--device cuda");

  const Result kernels = ferry(
      "calibrate --small --device cuda --rounds 1 --kernels kernels.json" + kModel, preloaded);
  EXPECT_EQ(kernels.code, train::kResourceMissing);
  EXPECT_NE(kernels.err.find("CUPTI saw no kernel"), std::string::npos) << kernels.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "kernels.json"));
}
#endif

}  // namespace
}  // namespace ferry::real::calibrate
