// A sweep: programs × cards × options × budgets × policies, a TOML file.
//
//   description = "which card for which model"
//   programs = ["gpt2", "mine.jsonl"]     # shipped, or paths beside this file
//   hardware = ["rtx4090", "cards/b.toml"]
//   optimizers = ["none", "adamw"]        # from here on each list may be missing
//   microbatches = [1, 4]
//   orders = ["fbfb", "1f1b"]             # of micro-batches
//   spans = [true, false]
//   budgets = ["card", "80%", "20GiB"]    # "card": what it leaves a process; a share is of that
//   policies = ["keep", "best"]
//
//   [[skip]]                              # leaves out what matches all of its lists
//   programs = ["mine.jsonl"]
//   budgets = ["20GiB"]
//   [[only]]                              # where there are some, an item matches one of them
//   policies = ["best"]
//
// The items are all combinations but those left out. The list that comes last here varies fastest,
// whatever their order in the file. The reader checks the file alone: that a program exists is
// checked when it runs.
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

// Of each list, the place of its value.
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
  // What a program or a card is found by: a shipped name, or a path.
  std::string found_by(const std::string& value) const;
};

Sweep parse_sweep(std::string_view text, const std::string& file);
Sweep read_sweep(const std::filesystem::path& path);

// In bytes, of a card with so much memory. Throws UnitError.
std::int64_t sweep_budget(std::string_view budget, std::int64_t memory_bytes);

}  // namespace ferry
