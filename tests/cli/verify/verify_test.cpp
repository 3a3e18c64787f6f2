// `ferry verify` as its users meet it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/console/shell.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest()
      : result_(fs::path(::testing::TempDir()) / ("ferry_verify_" + std::to_string(getpid()))) {}
  Result verify(const std::string& more) {
    return shell(std::string(FERRY_PROGRAM) + " verify " + more, result_.string());
  }
  fs::path result_;
};

TEST_F(VerifyTest, FerryItselfIsClean) {
  const Result clean = verify("--programs 200 --seed 5 --jobs 2");
  EXPECT_EQ(clean.code, kOk) << clean.out;
  EXPECT_EQ(clean.out.rfind("seed 5\n", 0), 0u) << clean.out;
  EXPECT_NE(clean.out.find("200 programs in "), std::string::npos);
  EXPECT_NE(clean.out.find("no oracle objects"), std::string::npos);
  EXPECT_NE(clean.out.find("nested segments "), std::string::npos);
  const json again = json::parse(verify("--programs 200 --seed 5 --json").out);
  EXPECT_EQ(again["schema"], 1);
  EXPECT_EQ(again["programs"], 200);
  EXPECT_TRUE(again["failure"].is_null());
}

TEST_F(VerifyTest, EveryWay) {
  const Result all = verify("--programs 3 --small --every-way 1 --seed 1");
  EXPECT_EQ(all.code, kOk) << all.out;
  EXPECT_NE(all.out.find("3 programs, every way; "), std::string::npos) << all.out;
  const json again = json::parse(verify("--programs 3 --small --every-way 1 --seed 1 --json").out);
  EXPECT_EQ(again["programs"], 3);
  EXPECT_GT(again["runs"], 3);
  const json usual = json::parse(verify("--programs 3 --small --every-way 0 --seed 1 --json").out);
  EXPECT_EQ(usual["runs"], 3);
}

TEST_F(VerifyTest, EveryOrder) {
  const Result all = verify("--programs 2 --every-order 40 --seed 11");
  EXPECT_EQ(all.code, kOk) << all.out;
  EXPECT_NE(all.out.find("2 programs, every order; "), std::string::npos) << all.out;
  const json counts = json::parse(verify("--programs 2 --every-order 40 --seed 11 --json").out);
  EXPECT_GT(counts["classes"], 2);
  EXPECT_EQ(counts["cut_off"], 0);
  const json cut = json::parse(verify("--programs 2 --every-order 2 --seed 11 --json").out);
  EXPECT_EQ(cut["cut_off"], 1);
}

TEST_F(VerifyTest, ASeedIsNewEveryTime) {
  const std::string one = verify("--programs 1").out;
  const std::string two = verify("--programs 1").out;
  EXPECT_NE(one.substr(0, one.find('\n')), two.substr(0, two.find('\n')));
}

// The canary: what must be found is found, and the line that is printed shows it again.
TEST_F(VerifyTest, TheCanaryFails) {
  const Result killed = verify("--mutant consume.drop --seed 0");
  EXPECT_EQ(killed.code, kViolated);
  EXPECT_NE(killed.out.find("`consume` missing"), std::string::npos) << killed.out;
  const std::size_t begin = killed.out.find("--replay '") + 9;
  const std::string line = killed.out.substr(begin, killed.out.find('\n', begin) - begin);
  const Result again = verify("--replay " + line);
  EXPECT_EQ(again.code, kViolated);
  EXPECT_NE(killed.out.find(again.out), std::string::npos) << again.out;
}

// A line that was printed once says the same from then on, or its version is refused. (The page's
// own example had been written by an older version, and was refused.)
TEST_F(VerifyTest, ThePagesReplayLineShowsWhatItDid) {
  std::ifstream page(FERRY_SOURCE_DIR "/docs/guides/verifying.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  const std::size_t begin = text.find("--replay '");
  ASSERT_NE(begin, std::string::npos);
  const Result shown = verify(text.substr(begin, text.find('\n', begin) - begin));
  EXPECT_EQ(shown.code, kViolated) << shown.out;
  EXPECT_NE(shown.out.find("`consume` missing"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("10 device operations, 50 in all"), std::string::npos) << shown.out;
}

TEST_F(VerifyTest, TheMatrixIsWhole) {
  const Result result = verify("--mutants --json --seed 0");
  EXPECT_EQ(result.code, kOk);
  const json matrix = json::parse(result.out);
  EXPECT_EQ(matrix["schema"], 1);
  EXPECT_GE(matrix["mutants"].size(), 60u);
  for (const json& row : matrix["mutants"]) {
    EXPECT_TRUE(row.contains("name") && row.contains("world") && row.contains("tests"));
    EXPECT_FALSE(row["killed_by"].is_null()) << row;
  }
}

TEST_F(VerifyTest, TheSchedulersOfTheField) {
  const Result all = verify("--schedulers --json --seed 0 --programs 200");
  EXPECT_EQ(all.code, kOk) << all.out;
  const json table = json::parse(all.out);
  for (const json& row : table["schedulers"]) {
    EXPECT_EQ(row["expected"], row["caught_by"]) << row;
  }
  const Result one = verify("--scheduler torchtune-1860 --seed 0");
  EXPECT_EQ(one.code, kViolated);
  EXPECT_NE(one.out.find("PR #1860"), std::string::npos) << one.out;
  EXPECT_EQ(verify("--scheduler torchtune-1860-fixed --programs 50").code, kOk);
}

// The file that ships, and what `ferry check` says of it.
TEST_F(VerifyTest, ARunIsWrittenAsAHazard) {
  const fs::path hazard = result_.string() + ".jsonl";
  const std::string line =
      verify("--scheduler megatron-7398 --seed 0 --hazard " + hazard.string()).out;
  std::ifstream in(hazard);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  std::ifstream shipped(fs::path(FERRY_SOURCE_DIR) / "scenarios/hazards/megatron-7398.jsonl");
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(shipped), {}));
  const Result check =
      shell(std::string(FERRY_PROGRAM) + " check " + hazard.string(), result_.string());
  EXPECT_EQ(check.code, kViolated);
  EXPECT_NE(check.out.find(":32: read after write"), std::string::npos) << check.out;
  const std::size_t at = line.find("--replay ");
  ASSERT_NE(at, std::string::npos) << line;
  fs::remove(hazard);
  EXPECT_EQ(verify(line.substr(at, line.size() - at - 1) + " --hazard " + hazard.string()).code,
            kViolated);
  EXPECT_TRUE(fs::exists(hazard));
  fs::remove(hazard);
  EXPECT_EQ(verify("--hazard " + hazard.string()).code, kUsage);
  EXPECT_FALSE(fs::exists(hazard));
}

TEST_F(VerifyTest, TablesAreCsvAsWell) {
  const std::string one = verify("--mutant consume.drop --seed 0 --csv").out;
  EXPECT_TRUE(one.starts_with("name,world,killed_by,tests,counterexample_ops,")) << one;
  EXPECT_NE(one.find("\nconsume: drop,"), std::string::npos) << one;
  const std::string all = verify("--schedulers --csv --seed 0 --programs 1").out;
  EXPECT_TRUE(all.starts_with("name,system,faulty,what,source,expected,caught_by,programs,"))
      << all;
  EXPECT_NE(all.find("\ntorchtune-1860-fixed,torchtune,false,"), std::string::npos) << all;
  const Result campaign = verify("--programs 20 --seed 5 --csv");
  EXPECT_EQ(campaign.code, kOk);
  EXPECT_TRUE(campaign.out.starts_with(
      "seed,programs,runs,classes,cut_off,operations,seconds,oracle,words,replay\n5,20,20,0,0,"))
      << campaign.out;
  EXPECT_TRUE(campaign.out.ends_with(",,,\n")) << campaign.out;
  EXPECT_EQ(verify("--programs 1 --csv --json").code, kUsage);
}

TEST_F(VerifyTest, WhatIsWrongIsSaid) {
  const auto refused = [this](const std::string& arguments, const std::string& words) {
    const Result result = verify(arguments);
    EXPECT_EQ(result.code, kUsage) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_NE(result.err.find(words), std::string::npos) << arguments << ": " << result.err;
  };
  refused("--mutant nothing",
          "there is no 'nothing': expected a name from `ferry verify --mutants`");
  refused("--scheduler nothing", "expected a name from `ferry verify --schedulers`");
  refused("--mutant Consume.Dorp", "did you mean 'consume: drop'?");
  refused("--scheduler torchtune-186", "did you mean 'torchtune-1860'?");
  refused("--replay core", "expected WHO~TRIAL");
  refused("--replay core~AAAA", "as a report printed it");
  refused("--programs 0", "expected a whole number from 1 to");
  refused("--programs 99999999999999999999", "--programs");
  refused("--seconds -1", "expected a number above 0");
  refused("--seconds nan", "--seconds");
  refused("--seed -1", "--seed");
  refused("--replay ''", "--replay");
  refused("--mutant ''", "--mutant");
  refused("--mutants --small", "--small");
  refused("--replay core~AAAA --seed 1", "--seed");
  refused("--jobs 0", "--jobs");
  refused("--mutants --schedulers", "--schedulers");
  refused("--every-way -1", "--every-way");
  refused("--mutants --every-way 1", "--every-way");
  refused("--every-order 0", "--every-order");
  refused("--every-order 10 --small", "--small");
  refused("--every-order 10 --every-way 1", "--every-way");
  refused("--help-all",
          "--help-all");  // a word of `ferry plan`'s: another program gets it as it is
}

}  // namespace
}  // namespace ferry::cli
