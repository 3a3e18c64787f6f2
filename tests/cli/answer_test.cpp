// The answer that `ferry plan` ends with, and what each row's peak is made of.
#include "cli/answer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "scenarios/paths.h"
#include "scenarios/units.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class AnswerTest : public PlanFolder {};

// What is in memory at the peak, by kind, adds up to it.
TEST_F(AnswerTest, ARowsPeakIsMadeOfKinds) {
  const auto rows = nlohmann::json::parse(ferry("plan gpt2 --card h100 --policy keep,checkpoint "
                                                "--unchecked --json")
                                              .out)["rows"];
  for (const auto& row : rows) {
    std::int64_t sum = 0;
    for (const auto& [kind, bytes] : row["peak_bytes"].items()) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, row["device_peak_bytes"]) << row["policy"];
    EXPECT_GE(row["least_bytes"], row["device_peak_bytes"]) << row["policy"];
    EXPECT_LE(row["least_bytes"], row["device_reserved_bytes"]) << row["policy"];
  }
  const auto& keep = rows[0]["peak_bytes"];
  const auto& recomputed = rows[1]["peak_bytes"];
  // Two tensors for each parameter, in blocks that may be larger.
  EXPECT_GE(keep["optimizer"], 2 * 124'439'808LL * 2);
  EXPECT_EQ(keep["workspaces"], 65 << 20) << "cuBLAS's of both threads, and forward's cuBLASLt's";
  EXPECT_GT(keep["activations"], 3 * recomputed["activations"].get<std::int64_t>());
}

// A move that overlaps the optimizer may save some nanoseconds and leave more fragments than keep
// has: no search takes such a plan.
TEST_F(AnswerTest, WhereKeepFitsEachSearchHasAnAnswer) {
  const Result result =
      ferry("plan gpt2 --card rtx4090 --policy offload-some,mixed,best --unchecked");
  EXPECT_EQ(result.code, kOk);
  EXPECT_EQ(result.out.find("useless"), std::string::npos) << result.out;
}

TEST_F(AnswerTest, WhereNothingFitsTheAnswerSaysWhatItIsMadeOfAndWhatWouldHelp) {
  const Result result = ferry("plan llama3-8b --card rtx4090 --policy checkpoint --unchecked");
  EXPECT_EQ(result.code, kDoesNotFit);
  for (const char* part :
       {"Nothing fits in 23.2 GiB. checkpoint needs the least of these, ",
        " GiB more): ", "29.9 GiB of the optimizer's state",
        "Parameters and the optimizer's state alone take 44.9 GiB",
        "\nWhat would help, each planned:\n  the optimizer's state on the host, updated in "
        "backward (--optimizer-state in-backward): needs 27.5 GiB\n  and the loss in 8 slices",
        ": needs 20.1 GiB, and fits\n",
        "\n  another training: --optimizer sgd, which has no state: needs 31.7 GiB\n",
        "\n  another card, h100, h100-pcie or a100: fits\nFor the largest batch that fits call "}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

// On a card whose kernels are short, it is the host that decides.
TEST_F(AnswerTest, AHostThatIssuesTooSlowlyIsSaid) {
  const auto of = [&](const std::string& card) {
    return nlohmann::json::parse(
        ferry("plan gpt2 --card " + card + " --policy keep --unchecked --json").out);
  };
  const auto shipped = of("rtx4090");
  EXPECT_LT(shipped["rows"][0]["idle_for_host_ns"], shipped["rows"][0]["step_ns"]);
  EXPECT_EQ(shipped["answer"].get<std::string>().find("waits for the host"), std::string::npos);
  std::string text = read_file(find_shipped("hardware", "hardware", ".toml", "rtx4090"));
  const std::string launch = "launch = \"5us\"";
  text.replace(text.find(launch), launch.size(), "launch = \"500us\"");
  write("slow.toml", text);
  const auto slow = of("slow.toml");
  const std::int64_t idle = slow["rows"][0]["idle_for_host_ns"];
  EXPECT_GT(idle, slow["rows"][0]["step_ns"].get<std::int64_t>() / 2);
  EXPECT_NE(slow["answer"].get<std::string>().find(
                "of each step the GPU waits for the host, which takes 500 us to issue an "
                "operator."),
            std::string::npos)
      << slow["answer"];
}

// GPT-2 needs 9.64 GiB, and the context takes 0.49 GiB.
TEST_F(AnswerTest, WhatAPlanLeavesOfTheCardIsSaidIfItIsLittle) {
  const auto answer_with = [&](const std::string& capacity) {
    std::string text = read_file(find_shipped("hardware", "hardware", ".toml", "rtx4090"));
    const std::string shipped = "capacity = \"23.64GiB\"";
    text.replace(text.find(shipped), shipped.size(), "capacity = \"" + capacity + "\"");
    write("full.toml", text);
    return nlohmann::json::parse(
               ferry("plan gpt2 --card full.toml --policy keep --unchecked --json").out)["answer"]
        .get<std::string>();
  };
  EXPECT_NE(answer_with("10.2GiB").find(" of the card free: "), std::string::npos);
  EXPECT_EQ(answer_with("11GiB").find(" of the card free: "), std::string::npos);
}

TEST_F(AnswerTest, WhatPinningTakesIsSaid) {
  const std::string answer = nlohmann::json::parse(
      ferry("plan gpt2 --card rtx4090 --policy offload --budget 8GiB --unchecked --json")
          .out)["answer"];
  EXPECT_NE(answer.find(" Pinning "), std::string::npos) << answer;
  EXPECT_NE(answer.find(" of host memory takes about "), std::string::npos) << answer;
}

TEST_F(AnswerTest, TheAnswerSaysWhyWhatIsFasterDoesNotFit) {
  const Result result =
      ferry("plan gpt2 --card rtx4090 --policy keep,checkpoint --budget 8GiB --unchecked");
  EXPECT_EQ(result.code, kOk);
  EXPECT_NE(result.out.find("\nUse checkpoint: "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(" keep is faster and does not fit: it needs "), std::string::npos)
      << result.out;
}

// What is proposed keeps its promise: with it, the policy fits and takes that long.
TEST_F(AnswerTest, WhereAPlanSlowsTheTrainingWhatWouldMakeItFasterWasPlanned) {
  const std::string plan = "plan gpt2 --card rtx4090 --budget 8500MiB --unchecked --json --policy ";
  const auto found = nlohmann::json::parse(ferry(plan + "checkpoint").out);
  const std::string answer = found["answer"];
  const std::string faster = "\nWhat would make it faster, each planned alone:\n";
  ASSERT_NE(answer.find(faster), std::string::npos) << answer;
  EXPECT_NE(answer.find("at once): keep takes "), std::string::npos) << answer;
  const std::string one = "\n  --optimizer-implementation fused: checkpoint takes ";
  ASSERT_NE(answer.find(one), std::string::npos) << answer;
  const auto fused = nlohmann::json::parse(
      ferry(plan + "checkpoint --optimizer-implementation fused").out)["rows"][0];
  EXPECT_TRUE(fused["fits"]);
  EXPECT_NE(answer.find(one + format_time(fused["step_ns"].get<std::int64_t>()) + " a step"),
            std::string::npos)
      << answer;
}

TEST_F(AnswerTest, WhereKeepFitsNothingIsProposed) {
  EXPECT_EQ(ferry("plan gpt2 --card rtx4090 --policy keep --unchecked").out.find("would"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry::cli
