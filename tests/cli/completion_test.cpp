// bash completes the command line by the script that `ferry completion bash` prints.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/console/exit_codes.h"
#include "tests/cli/console/shell.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest()
      : folder_(fs::path(::testing::TempDir()) / ("ferry_completion_" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "plans");
    std::ofstream(folder_ / "mine.toml");
    std::ofstream(folder_ / "gpt two.plan");
    EXPECT_EQ(run("'" FERRY_PROGRAM "' completion bash >ferry.bash").code, kOk);
  }
  ~CompletionTest() override { fs::remove_all(folder_); }

  // In that folder.
  Result run(const std::string& command) const {
    return shell("cd '" + folder_.string() + "' && " + command, (folder_ / "run").string());
  }
  // What bash would offer for the last of the words, as bash cuts them; in its order.
  Words offered(const std::string& words, const std::string& program = FERRY_PROGRAM) const {
    std::ofstream(folder_ / "ask.bash")
        << "source ./ferry.bash\n"
        << "COMP_WORDS=('" << program << "' " << words << ")\n"
        << "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
        << "[[ $(complete -p ferry) == 'complete -F _ferry ferry' ]] || exit 1\n"
        << "_ferry ferry\n"
        << "((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    const Result result = run("bash --norc ask.bash");
    EXPECT_EQ(result.code, 0) << words;
    EXPECT_EQ(result.err, "") << words;
    Words lines;
    std::istringstream text(result.out);
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  }
  static bool has(const Words& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  const fs::path folder_;
};

TEST_F(CompletionTest, Commands) {
  EXPECT_EQ(offered("pl"), Words{"plan"});
  EXPECT_EQ(offered("com"), Words{"completion"});
  EXPECT_EQ(offered("completion ''"), Words{"bash"});
  EXPECT_EQ(offered("--v"), Words{"--version"});
  const Words all = offered("''");
  for (const char* command : {"plan", "simulate", "train", "calibrate", "replay", "verify", "check",
                              "programs", "hardware", "--help"}) {
    EXPECT_TRUE(has(all, command)) << command;
  }
}

// Each command's help lists its options, and so does the shell.
TEST_F(CompletionTest, EveryOptionOfEveryCommand) {
  for (const std::string command :
       {"plan", "simulate", "replay", "verify", "check", "programs", "hardware", "completion"}) {
    Words listed;
    const bool is_long = command == "plan" || command == "simulate";
    std::istringstream help(
        run("'" FERRY_PROGRAM "' " + command + (is_long ? " --help-all" : " --help")).out);
    for (std::string line; std::getline(help, line);) {
      if (!line.starts_with("  -")) continue;
      const std::string names = line.substr(2, line.find(' ', 2) - 2);  // "-o,--output"
      std::istringstream each(names);
      for (std::string name; std::getline(each, name, ',');) {
        if (name.starts_with("--")) listed.push_back(name);
      }
    }
    Words all = offered(command + " --");
    EXPECT_GE(listed.size(), 1u) << command;
    std::sort(listed.begin(), listed.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, listed) << command;
  }
  EXPECT_EQ(offered("check run.jsonl --l"), Words{"--leaks"});
}

TEST_F(CompletionTest, CardsProgramsAndFilesInTheirPlace) {
  EXPECT_EQ(offered("plan gpt2 --card h20"), Words{"h200"});
  EXPECT_EQ(offered("plan gpt2 --card mi"), Words{"mine.toml"});
  EXPECT_EQ(offered("hardware rtx409"), Words{"rtx4090"});
  EXPECT_EQ(offered("plan llama3-8"), (Words{"llama3-8b", "llama3-8b-lora"}));
  EXPECT_EQ(offered("simulate --unchecked llama3-8"), (Words{"llama3-8b", "llama3-8b-lora"}));
  // bash takes --card=h20 apart.
  EXPECT_EQ(offered("plan gpt2 --card = h20"), Words{"h200"});
  EXPECT_TRUE(has(offered("plan gpt2 --card ="), "a100"));
}

TEST_F(CompletionTest, FilesAfterAnOptionThatTakesOne) {
  EXPECT_EQ(offered("plan gpt2 -o gp"), Words{"gpt two.plan"});
  EXPECT_EQ(offered("plan gpt2 --output pl"), Words{"plans"});
  EXPECT_EQ(offered("check mi"), Words{"mine.toml"});
  EXPECT_EQ(offered("simulate gpt2 --log gp"), Words{"gpt two.plan"});
  EXPECT_EQ(offered("plan gpt2 --budget ''"), Words{});
}

TEST_F(CompletionTest, PoliciesOneByOneBehindCommas) {
  EXPECT_EQ(offered("plan gpt2 --policy mi"), Words{"mixed"});
  EXPECT_EQ(offered("plan gpt2 --policy keep,mi"), Words{"keep,mixed"});
  EXPECT_EQ(offered("plan gpt2 --stages 2 --policy per"), Words{"per-stage"});
  EXPECT_EQ(offered("simulate gpt2 --policy per"), Words{});
  EXPECT_EQ(offered("plan gpt2 --policy offload,checkpoint-"),
            (Words{"offload,checkpoint-nth", "offload,checkpoint-offload",
                   "offload,checkpoint-offload-all"}));
  EXPECT_EQ(offered("plan gpt2 --optimizer adamw --schedule ff"), Words{"ffbb"});
  EXPECT_EQ(offered("plan gpt2 --stages 2 --schedule gpipe,1"), Words{"gpipe,1f1b"});
  EXPECT_EQ(offered("plan gpt2 --stages 2 --balance m"), Words{"memory"});
  EXPECT_EQ(offered("verify --mutant consume.dr"), Words{"consume.drop"});
  EXPECT_EQ(offered("verify --scheduler torchtune-19"), Words{"torchtune-1936"});
}

// compgen expands the words that it chooses from.
TEST_F(CompletionTest, NamesOfFilesAreNoCommands) {
  fs::create_directories(folder_ / "scenarios/hardware");
  std::ofstream(folder_ / "scenarios/hardware/$(touch pwned).toml");
  std::ofstream(folder_ / "scenarios/hardware/h100.toml");
  ASSERT_EQ(run("FERRY_SCENARIOS=scenarios '" FERRY_PROGRAM "' completion bash >ferry.bash").code,
            kOk);
  EXPECT_EQ(offered("hardware h"), Words{"h100"});
  EXPECT_EQ(run("cat ferry.bash").out.find("touch"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "pwned"));
}

// They are other programs: their options come from their help, of the model that is trained.
TEST_F(CompletionTest, OptionsOfTrainAreThoseOfItsHelp) {
  const fs::path other = folder_ / "ferry-train";
  fs::copy_file(FERRY_PROGRAM, folder_ / "ferry");
  std::ofstream(other) << R"(#!/bin/sh
echo "$*" >asked
cat <<'TEXT'
Options:
  -h,--help                   Print this help
  --save-every N              And so often
  --save FILE                 The state

Subcommands:
  gpt                         A small GPT

Examples:
  ferry train gpt --nothing
TEXT
)";
  fs::permissions(other, fs::perms::owner_all);
  const std::string program = (folder_ / "ferry").string();
  EXPECT_TRUE(has(offered("train g", program), "gpt"));
  EXPECT_EQ(offered("train gpt --s", program), (Words{"--save-every", "--save"}));
  EXPECT_EQ(run("cat asked").out, "gpt --help\n");
  EXPECT_EQ(offered("train gpt --no", program), Words{});
  EXPECT_EQ(offered("train gpt --save mi", program), Words{"mine.toml"});
}

TEST_F(CompletionTest, AnUnknownShellIsRefused) {
  const Result result = run("'" FERRY_PROGRAM "' completion basch");
  EXPECT_EQ(result.code, kUsage);
  EXPECT_EQ(result.err, "ferry: shell: expected bash, got 'basch': did you mean 'bash'?\n");
}

}  // namespace
}  // namespace ferry::cli
