// A program that was captured from a script is planned as the script trains, unless something else
// is typed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "tests/cli/plan_folder.h"

namespace ferry::cli {
namespace {

class PlanCapturedTest : public PlanFolder {
 protected:
  PlanCapturedTest() {
    Program program = test::chain({});
    program.about = {{"script", "train.py"},
                     {"optimizer", "adamw fused"},
                     {"microbatches", "2"},
                     {"clipped", "clip_grad_norm_"},
                     {"batch", "8"}};
    write("script.jsonl", to_text(program));
    program.about = {{"optimizer", "Lion foreach"}, {"microbatches", "many"}};
    write("other.jsonl", to_text(program));
    program.about = {{"optimizer", "adamw sideways"}};
    write("sideways.jsonl", to_text(program));
    program.about = {{"script", "train.py"}};
    write("none.jsonl", to_text(program));
  }
  // What differs where another training is meant.
  std::string figures(const std::string& typed) {
    const Result result = ferry("plan --json --policy keep --card tiny.toml " + typed);
    EXPECT_EQ(result.code, kOk) << result.err;
    const auto json = nlohmann::json::parse(result.out);
    const auto& row = json["rows"][0];
    return json["optimizer"].dump() + json["microbatches"].dump() + row["optimizer_ns"].dump() +
           row["peak_bytes"].dump() + row["step_ns"].dump();
  }
};

TEST_F(PlanCapturedTest, TheScriptsTrainingIsPlanned) {
  const std::string said = figures("script.jsonl");
  EXPECT_EQ(said, figures("chain.jsonl --optimizer adamw --optimizer-implementation fused "
                          "--microbatches 2 --clip-grad-norm"));
  EXPECT_NE(said, figures("chain.jsonl"));
  const std::string table = ferry("plan script.jsonl --card tiny.toml --policy keep").out;
  EXPECT_NE(table.find("\nCaptured: script train.py, batch 8.\n"), std::string::npos) << table;
  EXPECT_NE(table.find("the state of adamw (as captured); the step is 2 micro-batches"),
            std::string::npos)
      << table;
}

// 2.13 takes other blocks than 2.11, and what this offload reserves is more than what `keep` does.
TEST_F(PlanCapturedTest, TheAllocatorIsThatOfItsPyTorch) {
  Program program = load_program(find_program("mixtral-block"));
  const auto is_useless = [&](const char* torch) {
    program.about = {{"torch", torch}};
    write("of.jsonl", to_text(program));
    const Result result = ferry("plan of.jsonl --card a100 --policy offload --json --unchecked");
    return nlohmann::json::parse(result.out)["rows"][0]["useless"].get<bool>();
  };
  EXPECT_FALSE(is_useless("2.11.0"));
  EXPECT_TRUE(is_useless("2.15.0"));
}

TEST_F(PlanCapturedTest, WhatIsTypedCounts) {
  EXPECT_EQ(figures("script.jsonl --optimizer sgd --microbatches 3"),
            figures("chain.jsonl --optimizer sgd --microbatches 3"));
  EXPECT_EQ(figures("script.jsonl --optimizer-implementation foreach"),
            figures("chain.jsonl --optimizer adamw --optimizer-implementation foreach "
                    "--microbatches 2 --clip-grad-norm"));
}

TEST_F(PlanCapturedTest, WhatIsNotKnownIsAsIfTheFileDidNotSay) {
  EXPECT_EQ(figures("other.jsonl"), figures("chain.jsonl"));
  EXPECT_EQ(figures("sideways.jsonl"), figures("chain.jsonl"));
}

TEST_F(PlanCapturedTest, AScriptWithoutAnOptimizerIsPlannedWithoutOne) {
  EXPECT_EQ(figures("none.jsonl"), figures("chain.jsonl --optimizer none"));
}

TEST_F(PlanCapturedTest, APlanOfItRunsOnIt) {
  ASSERT_EQ(ferry("plan script.jsonl --card tiny.toml --policy offload -o p.json").code, kOk);
  EXPECT_EQ(ferry("simulate script.jsonl --card tiny.toml --plan p.json").code, kOk);
}

}  // namespace
}  // namespace ferry::cli
