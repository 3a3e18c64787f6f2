// The program as its users meet it: what is on stdout and stderr, and the exit code.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/console/exit_codes.h"
#include "formats/text_file.h"
#include "tests/cli/console/shell.h"

namespace ferry::cli {
namespace {

Result ferry(const std::string& arguments, const std::string& redirect = "") {
  const std::string stem = ::testing::TempDir() + "/ferry_cli_" + std::to_string(::getpid());
  const std::string out = redirect.empty() ? stem + ".out" : redirect;
  const std::string command =
      std::string(FERRY_PROGRAM) + " " + arguments + " >" + out + " 2>" + stem + ".err";
  const int status = std::system(command.c_str());
  Result result{.code = WEXITSTATUS(status), .out = "", .err = read_file(stem + ".err")};
  if (redirect.empty()) result.out = read_file(out);
  std::filesystem::remove(stem + ".out");
  std::filesystem::remove(stem + ".err");
  return result;
}

TEST(CliTest, VersionAndHelpGoToStdout) {
  EXPECT_EQ(ferry("--version").out, std::string("ferry ") + FERRY_VERSION + "\n");
  const Result help = ferry("--help");
  EXPECT_EQ(help.code, kOk);
  for (const char* word : {"programs", "hardware", "Examples:", "Exit codes:"}) {
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(ferry("hardware --help").code, kOk);
}

// What is asked for first is found at a glance, and the rest is there.
TEST(CliTest, HelpOfALongCommandListsFewOptionsAndHelpAllEveryOne) {
  const auto options = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("\n  -", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  for (const std::string command : {"plan", "simulate", "report"}) {
    const Result few = ferry(command + " --help");
    const Result all = ferry(command + " --help-all");
    EXPECT_EQ(few.code, kOk);
    EXPECT_EQ(all.code, kOk);
    EXPECT_LE(options(few.out), 15U) << few.out;
    EXPECT_GE(options(all.out), 24U) << all.out;
    EXPECT_NE(few.out.find("--help-all "), std::string::npos);
    EXPECT_EQ(few.out.find("--cublas-workspace-config"), std::string::npos);
    EXPECT_NE(all.out.find("--cublas-workspace-config"), std::string::npos);
  }
  // What is not listed works all the same.
  EXPECT_EQ(ferry("simulate gpt2 --card h100 --policy keep --unchecked --segments-go-up").code,
            kOk);
}

// Every command's help had the same examples, of all commands.
TEST(CliTest, EachCommandHasExamplesOfItsOwn) {
  for (const std::string command :
       {"plan", "sweep", "simulate", "replay", "verify", "check", "programs", "hardware"}) {
    const std::string help = ferry(command + " --help").out;
    std::size_t at = help.find("Examples:\n");
    ASSERT_NE(at, std::string::npos) << command;
    for (at = help.find("\n  ferry ", at); at != std::string::npos;
         at = help.find("\n  ferry ", at + 1)) {
      EXPECT_EQ(help.substr(at + 9, command.size() + 1), command + " ") << help;
    }
  }
}

TEST(CliTest, WrongUsageIsTwo) {
  for (const char* arguments : {"", "nonsense", "hardware --nonsense", "hardware no-such-gpu"}) {
    const Result result = ferry(arguments);
    EXPECT_EQ(result.code, kUsage) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(result.err.rfind("ferry: ", 0), 0u) << result.err;
  }
}

TEST(CliTest, BadInputIsNamedWithItsLine) {
  const std::string path =
      ::testing::TempDir() + "/ferry_bad_" + std::to_string(::getpid()) + ".toml";
  std::string card = read_file(FERRY_SOURCE_DIR "/scenarios/hardware/h100.toml");
  card.replace(0, card.find('\n'), "description = 3");
  std::ofstream(path) << card;
  EXPECT_EQ(ferry("hardware " + path).err,
            "ferry: " + path + ":1: expected description: a string\n");
  std::filesystem::remove(path);
}

// Two ops of a week each ended the program; its name wrote to the terminal.
TEST(CliTest, AStepBeyondTheSimulatorsLimitsDoesNotFit) {
  const std::string path =
      ::testing::TempDir() + "/ferry_long_" + std::to_string(::getpid()) + ".jsonl";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(
      "{\"ferry\":\"program\",\"schema\":1,\"name\":\"\\u001b[31mlong\"}\n"
      "{\"code\":0,\"kind\":\"main\"}\n"
      "{\"op\":\"a\",\"in\":[],\"out\":[],\"ns\":600000000000000}\n"
      "{\"op\":\"a\",\"in\":[],\"out\":[],\"ns\":600000000000000}\n",
      file);
  std::fclose(file);
  const Result result = ferry("simulate " + path + " --card h100 --policy keep");
  EXPECT_EQ(result.code, kDoesNotFit);
  EXPECT_EQ(result.err,
            "ferry: keep: \\x1b[31mlong:4: a step takes at most 11 days (10^15 ns) if all its "
            "work runs one after another; this step takes longer\n");
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
  EXPECT_NE(result.out.find("\\x1b[31mlong on h100"), std::string::npos) << result.out;
  std::filesystem::remove(path);
}

TEST(CliTest, OldNamesOfOptionsGoOnWorkingAndAreTold) {
  const std::string rest = " --policy keep --unchecked --microbatches 2";
  const Result now = ferry("plan gpt2 --card h100 --schedule ffbb" + rest);
  const Result old = ferry("plan gpt2 --hardware h100 --order=ffbb" + rest);
  EXPECT_EQ(old.code, kOk);
  EXPECT_EQ(old.out, now.out);
  EXPECT_EQ(now.err, "");
  EXPECT_EQ(old.err,
            "ferry: --hardware is called --card now; the old name goes with the next version\n"
            "ferry: --order is called --schedule now; the old name goes with the next version\n");
}

TEST(CliTest, HardwareIsListedForPeopleAndMachines) {
  EXPECT_NE(ferry("hardware").out.find("rtx4090"), std::string::npos);
  const auto json = nlohmann::json::parse(ferry("hardware h100 --json").out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["hardware"].size(), 1u);
  EXPECT_EQ(json["hardware"][0]["link"]["h2d_bytes_per_us"], 55'600);
}

TEST(CliTest, HardwareIsAlsoCsv) {
  const std::string csv = ferry("hardware h100 --csv").out;
  EXPECT_EQ(csv.rfind("name,description,memory_bytes,", 0), 0u) << csv;
  EXPECT_NE(csv.find(",link.h2d_bytes_per_us,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\nh100,\"NVIDIA H100"), std::string::npos) << csv;  // with a comma in it
}

// One broken card hid all the others.
TEST(CliTest, ABrokenCardIsNamedAndTheOthersServe) {
  namespace fs = std::filesystem;
  const fs::path root =
      fs::path(::testing::TempDir()) / ("ferry_scenarios_" + std::to_string(::getpid()));
  fs::create_directories(root / "hardware");
  fs::copy_file(fs::path(FERRY_SOURCE_DIR) / "scenarios/hardware/h100.toml",
                root / "hardware/h100.toml");
  std::ofstream(root / "hardware/broken.toml") << "memory = 3\n";
  ASSERT_EQ(::setenv("FERRY_SCENARIOS", root.c_str(), 1), 0);
  const Result list = ferry("hardware");
  EXPECT_EQ(list.code, kOk);
  EXPECT_NE(list.out.find("\nh100 "), std::string::npos) << list.out;
  EXPECT_EQ(list.err,
            "ferry: " + (root / "hardware/broken.toml").string() +
                ": expected keys \"description\", \"host_memory\", \"memory_rate\", "
                "\"kernel_min\", \"launch\", \"peak.bf16\", \"peak.fp32\", \"peak.fp64\", "
                "\"efficiency.matmul\", \"efficiency.memory\", \"link.h2d\", \"link.d2h\", "
                "\"link.h2d_both\", \"link.d2h_both\", \"link.latency\"\n");
  const Result plan =
      ferry("plan " FERRY_SOURCE_DIR "/scenarios/programs/gpt2.jsonl --card h100 --policy keep");
  EXPECT_EQ(plan.code, kOk);
  EXPECT_EQ(plan.err, "");
  EXPECT_EQ(ferry("hardware broken").code, kUsage);  // where it is asked for, it is an error
  ::unsetenv("FERRY_SCENARIOS");
  fs::remove_all(root);
}

TEST(CliTest, ProgramsAreListed) {
  const auto json = nlohmann::json::parse(ferry("programs --json").out);
  EXPECT_EQ(json["ferry"], "programs");
  EXPECT_TRUE(json["programs"].is_array());
  const std::string csv = ferry("programs --csv").out;
  EXPECT_EQ(csv.rfind("name,path,description\n", 0), 0u) << csv;
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')),
            json["programs"].size() + 1);
  EXPECT_EQ(ferry("programs --json --csv").code, kUsage);
}

TEST(CliTest, AResultThatCannotBeWrittenIsNone) {
  EXPECT_EQ(ferry("hardware", "/dev/full").code, kResourceMissing);
}

}  // namespace
}  // namespace ferry::cli
