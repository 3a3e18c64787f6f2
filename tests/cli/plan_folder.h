// A folder for the tests of `ferry plan`, with programs and a card, in which the program is run.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/console/exit_codes.h"
#include "formats/program_file.h"
#include "formats/text_file.h"
#include "tests/cli/console/shell.h"
#include "tests/sim/support/segmented.h"
#include "tests/sim/support/tiny.h"

namespace ferry::cli {

// A folder with a chain of two layers and a card on which a byte takes a nanosecond.
class PlanFolder : public ::testing::Test {
 protected:
  PlanFolder()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("ferry_plan_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    write("chain.jsonl", to_text(test::chain({})));
    write("blocks.jsonl", to_text(test::segmented({{}, {}, {}}, {.inner_elements = 1 << 22})));
    write("tiny.toml", R"(description = "a byte a nanosecond"
memory = "1GiB"
host_memory = "1GiB"
memory_rate = "1GB/s"
kernel_min = "1ns"
launch = "0ns"
[peak]
bf16 = "1GFLOP/s"
fp32 = "1GFLOP/s"
fp64 = "1GFLOP/s"
[efficiency]
matmul = "100%"
memory = "100%"
[link]
h2d = "1GB/s"
d2h = "1GB/s"
h2d_both = "1GB/s"
d2h_both = "1GB/s"
latency = "0ns"
)");
  }
  ~PlanFolder() override { std::filesystem::remove_all(folder_); }

  // In that folder.
  Result ferry(const std::string& arguments) const {
    return shell("cd '" + folder_.string() + "' && '" FERRY_PROGRAM "' " + arguments,
                 (folder_ / "ferry").string());
  }
  std::string read(const std::string& name) const { return read_file(folder_ / name); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_),
                         std::filesystem::directory_iterator());
  }
  // With exit code 2, nothing on stdout, and this on stderr, at its start.
  void expect_refused(const std::string& arguments, const std::string& message) const {
    const Result result = ferry(arguments);
    EXPECT_EQ(result.code, kUsage) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_EQ(result.err.substr(0, message.size() + 7), "ferry: " + message) << arguments;
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace ferry::cli
