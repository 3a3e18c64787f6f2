// The subcommands that become another program: without it they say what is missing.
#include "cli/console/sibling.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/console/shell.h"

namespace ferry::cli {
namespace {

// `ferry` alone in a folder, and what is put beside it.
class SiblingTest : public ::testing::Test {
 protected:
  SiblingTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("ferry_sibling_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(FERRY_PROGRAM, folder_ / "ferry",
                               std::filesystem::copy_options::overwrite_existing);
  }
  ~SiblingTest() override { std::filesystem::remove_all(folder_); }

  Result ferry(const std::string& arguments) const {
    return shell("'" + (folder_ / "ferry").string() + "' " + arguments, (folder_ / "run").string());
  }

  const std::filesystem::path folder_;
};

TEST_F(SiblingTest, WithoutLibTorchWhatNeedsItSaysSo) {
  for (const std::string name : {"train", "calibrate"}) {
    const Result result = ferry(name + " gpt --json");
    EXPECT_EQ(result.code, kResourceMissing);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(result.err.starts_with("ferry: " + name + " needs LibTorch, and this Ferry was "))
        << result.err;
  }
}

TEST_F(SiblingTest, WithoutItsProgramVerifySaysWhatIsMissing) {
  const Result result = ferry("verify --programs 3");
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("ferry: verify needs RapidCheck, and this Ferry was "))
      << result.err;
}

TEST_F(SiblingTest, TheOtherProgramGetsTheArgumentsAsTheyAre) {
  const std::filesystem::path other = folder_ / "ferry-calibrate";
  std::ofstream(other) << "#!/bin/sh\necho \"$# $1 $2 $3\"\nexit 5\n";
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  const Result result = ferry("calibrate --help 'two words' -o");
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(result.out, "3 --help two words -o\n");
}

TEST_F(SiblingTest, AProgramThatCannotRunIsAnError) {
  std::ofstream(folder_ / "ferry-train") << "not to be executed\n";
  const Result result = ferry("train gpt");
  EXPECT_EQ(result.code, kResourceMissing);
  EXPECT_TRUE(result.err.starts_with("ferry: cannot run ")) << result.err;
}

}  // namespace
}  // namespace ferry::cli
