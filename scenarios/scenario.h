// A scenario: program × hardware × policies × budget, a small TOML file.
//
//   description = "GPT-2 on a card that it does not fit"
//   program = "gpt2"              # shipped, or a path beside this file
//   hardware = "rtx4090"
//   budget = "12GiB"              # of device memory; without it, all that the hardware has
//   policies = ["keep", "budget"]
//   optimizer = "adamw"           # none, sgd, momentum, adam or adamw
//   microbatches = 4
//
// The reader checks the file alone: that a program exists is checked when it runs.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

// The policies of sim/plan/planner.h; the searches come last. Those for segments need a program
// that has some.
inline constexpr std::array<std::string_view, 9> kPolicies = {
    "keep",           "offload-all",        "offload", "prefetch", "checkpoint",
    "checkpoint-nth", "checkpoint-offload", "budget",  "mixed"};
constexpr bool is_for_segments(std::string_view policy) {
  return policy == "mixed" || policy.starts_with("checkpoint");
}
// "keep, offload-all, … or mixed".
std::string list_of_policies();

struct Scenario {
  std::string name;  // the file's name
  std::string description;
  std::string program;   // a shipped name, or a path
  std::string hardware;  // a shipped name, or a path
  std::optional<std::int64_t> budget_bytes;
  std::vector<std::string> policies;
  std::string optimizer = "none";
  std::int64_t microbatches = 1;
};

Scenario parse_scenario(std::string_view text, const std::string& file);
Scenario read_scenario(const std::filesystem::path& path);
Scenario find_scenario(const std::string& name_or_path);  // from scenarios/plans

}  // namespace ferry
