// A folder with a sweep whose last item takes its time, and what is seen of a sweep from outside.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "formats/text_file.h"
#include "tests/cli/console/shell.h"

namespace ferry::cli {

// A process whose parent this is, and that has this in its environment.
inline std::optional<pid_t> child_of(pid_t parent, const std::string& variable = "") {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto content = [&entry](const char* file) {
      std::ifstream in(entry.path() / file, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const std::string text = content("stat");
    const std::size_t end = text.rfind(") ");  // of the program's name
    if (end == std::string::npos || text.size() < end + 4) continue;
    if (std::atoi(text.c_str() + end + 4) != parent) continue;
    if (content("environ").find(variable) != std::string::npos) return std::atoi(name.c_str());
  }
  return std::nullopt;
}

inline pid_t wait_for_child_of(pid_t parent, const std::string& variable = "") {
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (const auto child = child_of(parent, variable)) return *child;
  }
}

class StopFolder : public ::testing::Test {
 protected:
  // Under "budget" it takes about a second. Under "best" several, where nothing fits and the search
  // goes to its end.
  explicit StopFolder(const std::string& policy = "budget", const std::string& optimizer = "none",
                      const std::string& budget = "50GiB")
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("ferry_sweep_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "s.toml") << R"(programs = ["unet", "llama3-8b"]
hardware = ["h100"]
optimizers = [")" << optimizer << R"("]
budgets = [")" << budget << R"("]
policies = ["keep", ")" << policy << R"("]
[[skip]]
programs = ["unet"]
policies = [")" << policy << "\"]\n";
  }
  ~StopFolder() override { std::filesystem::remove_all(folder_); }

  std::string sweep(const std::string& options = "", const std::string& launcher = "") const {
    return "cd '" + folder_.string() + "' && exec " + launcher +
           " '" FERRY_PROGRAM "' sweep s.toml -o r.jsonl " + options;
  }
  std::string results() const { return read_file(folder_ / "r.jsonl"); }
  std::size_t lines() const {
    if (!std::filesystem::exists(folder_ / "r.jsonl")) return 0;
    const std::string text = results();
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Of the last line.
  nlohmann::json last() const {
    const std::string text = results();
    return nlohmann::json::parse(text.substr(text.rfind('\n', text.size() - 2) + 1));
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                                  std::filesystem::directory_iterator()));
  }

  const std::filesystem::path folder_;
};

}  // namespace ferry::cli
