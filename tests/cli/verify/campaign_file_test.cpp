// A campaign that was stopped or killed goes on, and ends as one that ran through.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/atomic_file.h"
#include "formats/text_file.h"
#include "tests/cli/verify/ranks.h"

namespace ferry::cli {
namespace {

class CampaignFileTest : public testing::Test {
 protected:
  ~CampaignFileTest() override { std::filesystem::remove(file_); }

  Result campaign(const std::string& arguments, const std::string& launcher = "") {
    return verify(launcher, arguments + " --resume '" + file_.string() + "'");
  }

  // Of the last lines: what is covered.
  static std::string covered(const Result& result) {
    const std::size_t at = result.out.find("covered");
    return at == std::string::npos ? "nothing" : result.out.substr(at);
  }

  const std::filesystem::path file_ = verify_file(".json");
};

TEST_F(CampaignFileTest, PartsEndAsTheWhole) {
  const Result whole = verify("", "--programs 300 --seed 4");
  EXPECT_EQ(campaign("--programs 70 --seed 4").code, kOk);
  EXPECT_EQ(campaign("--programs 190").code, kOk) << "the seed is the file's";
  const Result rest = campaign("--programs 300");
  EXPECT_EQ(rest.code, kOk) << rest.err;
  EXPECT_NE(rest.out.find("300 programs, 110 of them in "), std::string::npos) << rest.out;
  EXPECT_EQ(covered(rest), covered(whole));
  const Result done = campaign("--programs 300 --seed 4");
  EXPECT_EQ(covered(done), covered(whole));
}

TEST_F(CampaignFileTest, EveryWayGoesOnAsWell) {
  const std::string every_way = " --small --every-way 1 --seed 4";
  EXPECT_EQ(campaign("--programs 1" + every_way).code, kOk);
  EXPECT_EQ(covered(campaign("--programs 2" + every_way)),
            covered(verify("", "--programs 2" + every_way)));
}

TEST_F(CampaignFileTest, AFailureIsFoundAgain) {
  const std::string canary = "--canary rule.refuse-late --programs 2000 --seed 2 --jobs 1";
  const Result whole = verify("", canary);
  campaign("--canary rule.refuse-late --programs 500 --seed 2");
  for (int i = 0; i < 2; ++i) {
    const Result found = campaign(canary);
    EXPECT_EQ(found.code, kViolated);
    const std::size_t at = whole.out.find("program 905 of seed 2:");
    ASSERT_NE(at, std::string::npos) << whole.out;
    EXPECT_NE(found.out.find(whole.out.substr(at)), std::string::npos) << found.out;
  }
}

TEST_F(CampaignFileTest, AnotherCampaignsFileIsRefused) {
  campaign("--programs 20 --seed 4");
  const std::string before = read_file(file_);
  for (const char* other : {"--programs 20 --seed 5", "--programs 20 --seed 4 --small",
                            "--programs 20 --seed 4 --canary rule.forward-stream"}) {
    const Result result = campaign(other);
    EXPECT_EQ(result.code, kUsage);
    EXPECT_NE(result.err.find("expected the file of this campaign"), std::string::npos)
        << result.err;
  }
  EXPECT_EQ(read_file(file_), before);
}

TEST_F(CampaignFileTest, AnyOtherFileIsRefused) {
  for (const char* text : {"", "{}", "[1]", "{\"campaign\": {\"seed\": 4}", "mine"}) {
    write_file(file_, text);
    const Result result = campaign("--programs 20 --seed 4");
    EXPECT_EQ(result.code, kUsage);
    EXPECT_NE(result.err.find("expected the file of a campaign"), std::string::npos) << result.err;
    EXPECT_EQ(read_file(file_), text);
  }
}

// What is not asked for is skipped, and each key that is asked for is refused by its name.
TEST_F(CampaignFileTest, WhatIsUsedIsRefusedByItsKeyAndTheRestIsSkipped) {
  campaign("--programs 20 --seed 4");
  const std::string written = read_file(file_);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = written;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_file(file_, text.replace(at, from.size(), to));
    return campaign("--programs 20 --seed 4");
  };
  for (const std::string object : {"\"campaign\": {", "\"coverage\": {", "{"}) {
    const Result result = with(object, object + "\"later\": [1e400, {\"end\": -1}],");
    EXPECT_EQ(result.code, kOk) << object << result.err;
  }
  for (const std::string key : {"campaign", "coverage", "end", "steps", "features", "programs"}) {
    const Result result = with("\"" + key + "\": ", "\"" + key + "\": 1e400, \"x\": ");
    EXPECT_EQ(result.code, kUsage);
    EXPECT_NE(result.err.find("\"" + key + "\" is missing or wrong"), std::string::npos)
        << result.err;
  }
}

#ifdef FERRY_MPIRUN

TEST_F(CampaignFileTest, GoesOnOverRanks) {
  campaign("--programs 100 --seed 4");
  const Result rest = campaign("--programs 300", mpirun(3));
  EXPECT_EQ(rest.code, kOk) << rest.err;
  EXPECT_EQ(covered(rest), covered(verify("", "--programs 300 --seed 4")));
}

#endif

}  // namespace
}  // namespace ferry::cli
