// A sweep: a TOML file with lists of programs, cards, options, budgets and policies.
//
//   description = "which card for which model"
//   programs = ["gpt2", "mine.jsonl"]     # shipped, or paths beside this file
//   hardware = ["rtx4090", "cards/b.toml"]
//   optimizers = ["none", "adamw"]        # this list and the ones below are optional
//   microbatches = [1, 4]
//   orders = ["fbfb", "1f1b"]             # of micro-batches
//   spans = [true, false]
//   budgets = ["card", "80%", "20GiB"]    # "card": all usable memory; 80%: a share of it
//   policies = ["keep", "best"]
//
//   [[skip]]                              # leaves out items that match all lists here
//   programs = ["mine.jsonl"]
//   budgets = ["20GiB"]
//   [[only]]                              # keeps only items that match one of these tables
//   policies = ["best"]
//
// The items are all combinations that are not left out. The list that is last in this example
// varies fastest, whatever the order in the file. The reader checks only this file; missing
// programs are reported when the sweep starts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

enum class SweepKey : std::uint8_t {
  kPrograms,
  kHardware,
  kOptimizers,
  kMicrobatches,
  kOrders,
  kSpans,
  kBudgets,
  kPolicies,
};
inline constexpr std::array<std::string_view, 8> kSweepKeys = {
    "programs", "hardware", "optimizers", "microbatches", "orders", "spans", "budgets", "policies"};

struct SweepList {
  std::vector<std::string> values;  // as typed
  std::uint64_t line = 0;           // 0: not in the file, but the default
};

// The index of the item's value in each list.
using SweepItem = std::array<std::uint32_t, kSweepKeys.size()>;

struct Sweep {
  std::string file;
  std::string description;
  std::array<SweepList, kSweepKeys.size()> lists;
  std::vector<SweepItem> items;

  const SweepList& list(SweepKey key) const { return lists[static_cast<std::size_t>(key)]; }
  const std::string& value(const SweepItem& item, SweepKey key) const {
    return list(key).values[item[static_cast<std::size_t>(key)]];
  }
  // Returns the shipped name or the path by which a program or card of the sweep is found.
  std::string found_by(const std::string& value) const;
};

Sweep parse_sweep(std::string_view text, const std::string& file);
Sweep read_sweep(const std::filesystem::path& path);

// Returns a budget in bytes, on a card with `memory_bytes` of usable memory. Throws UnitError.
std::int64_t sweep_budget(std::string_view budget, std::int64_t memory_bytes);

}  // namespace ferry
