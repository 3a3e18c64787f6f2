// A scenario: a small TOML file with a program, a card, policies and a budget.
//
//   description = "GPT-2 on a card that it does not fit"
//   program = "gpt2"              # shipped, or a path beside this file
//   hardware = "rtx4090"
//   budget = "12GiB"              # device memory; default: all that the card has
//   policies = ["keep", "offload-some"]
//   optimizer = "adamw"           # none, sgd, momentum, adam or adamw
//   microbatches = 4
//
// The reader checks only this file. If the program exists is checked when it runs.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/policy.h"

namespace ferry {

inline constexpr std::array<std::string_view, 5> kOptimizers = {"none", "sgd", "momentum", "adam",
                                                                "adamw"};
inline constexpr std::array<std::string_view, 3> kMicrobatchOrders = {"fbfb", "ffbb", "1f1b"};

struct Scenario {
  std::string name;  // the file's name
  std::string description;
  std::string program;   // a shipped name, or a path
  std::string hardware;  // a shipped name, or a path
  std::optional<std::int64_t> budget_bytes;
  std::vector<Policy> policies;
  std::string optimizer = "adamw";
  std::int64_t microbatches = 1;
};

Scenario parse_scenario(std::string_view text, const std::string& file);
Scenario read_scenario(const std::filesystem::path& path);
Scenario find_scenario(const std::string& name_or_path);  // from scenarios/plans

}  // namespace ferry
