// A campaign over MPI's ranks says what it says alone.
#include <gtest/gtest.h>

#include <string>

#include "cli/console/exit_codes.h"
#include "tests/cli/verify/ranks.h"

namespace ferry::cli {
namespace {

// Without the line that says how long it took.
std::string untimed(std::string text) {
  const std::size_t at = text.find(" a second on ");
  if (at == std::string::npos) return text;
  const std::size_t begin = text.rfind('\n', at);
  return text.erase(begin, text.find('\n', at) - begin);
}

// The canary's first failure is program 905, far from the first block.
constexpr const char* kClean = "--programs 700 --seed 4";
constexpr const char* kCanary = "--canary rule.refuse-late --programs 2000 --seed 2";

TEST(CampaignRanksTest, ACanaryFailsAtTheSameProgramOnAnyNumberOfThreads) {
  const Result one = verify("", std::string(kCanary) + " --jobs 1");
  EXPECT_EQ(one.code, kViolated);
  EXPECT_NE(one.out.find("program 905 of seed 2:"), std::string::npos) << one.out;
  const Result three = verify("", std::string(kCanary) + " --jobs 3");
  EXPECT_EQ(untimed(three.out), untimed(one.out));
}

TEST(CampaignRanksTest, AnUnknownCanaryIsRefused) {
  const Result result = verify("", "--canary consume.drip");
  EXPECT_EQ(result.code, kUsage);
  EXPECT_EQ(result.err.find("ferry: --canary: there is no 'consume.drip'"), 0u) << result.err;
}

#ifdef FERRY_MPIRUN

TEST(CampaignRanksTest, VerdictAndCountsDoNotTellHowManyRanksThereWere) {
  const std::string alone = untimed(verify("", kClean).out);
  EXPECT_NE(alone.find("no oracle objects"), std::string::npos) << alone;
  for (const int ranks : {1, 2, 4}) {
    const Result result = verify(mpirun(ranks), kClean);
    EXPECT_EQ(result.code, kOk) << result.err;
    EXPECT_EQ(untimed(result.out), alone) << ranks;
  }
}

TEST(CampaignRanksTest, NorDoesTheFirstFailure) {
  const std::string json = verify("", std::string(kCanary) + " --json").out;
  const auto without_seconds = [](const std::string& text) {
    const std::size_t at = text.find("\"seconds\"");
    return text.substr(0, at) + text.substr(text.find('\n', at));
  };
  const Result result = verify(mpirun(3), std::string(kCanary) + " --json --jobs 2");
  EXPECT_EQ(result.code, kViolated) << result.err;
  EXPECT_EQ(without_seconds(result.out), without_seconds(json));
}

TEST(CampaignRanksTest, WhatIsOfOneProgramIsRefusedOnce) {
  const Result result = verify(mpirun(2), "--scheduler torchtune-1860");
  EXPECT_EQ(result.code, kUsage);
  EXPECT_EQ(result.err.find("expected a campaign"), result.err.rfind("expected a campaign"));
  EXPECT_NE(result.err.find("expected a campaign"), std::string::npos) << result.err;
}

#endif

}  // namespace
}  // namespace ferry::cli
