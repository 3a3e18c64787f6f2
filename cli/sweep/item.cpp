#include "cli/sweep/item.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/digest.h"
#include "formats/error.h"
#include "formats/program_file.h"
#include "formats/text_file.h"
#include "scenarios/policy.h"
#include "scenarios/programs.h"

namespace ferry::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns the path. The error for a missing file names the line of the sweep's list; errors in a
// file name its own lines.
template <class Find>
std::filesystem::path found(const Sweep& sweep, SweepKey key, Find find) {
  try {
    const std::filesystem::path path = find();
    open_file(path);
    return path;
  } catch (const InputError& error) {
    throw InputError(sweep.file, sweep.list(key).line, error.what());
  }
}

}  // namespace

Items::Items(Sweep sweep) : sweep_(std::move(sweep)) {
  for (const std::string& name : sweep_.list(SweepKey::kPrograms).values) {
    const std::filesystem::path path =
        found(sweep_, SweepKey::kPrograms, [&] { return find_program(sweep_.found_by(name)); });
    load_program(path);  // reports a bad program once, not for each of its items
    programs_[name] = {path.string(), digest_of(read_file(path))};
  }
  for (const std::string& name : sweep_.list(SweepKey::kHardware).values) {
    const std::filesystem::path path = found(sweep_, SweepKey::kHardware, [&] {
      return find_shipped("hardware", "hardware", ".toml", sweep_.found_by(name));
    });
    cards_[name] = {{path.string(), digest_of(read_file(path))}, read_hardware(path)};
  }
  by_hash_.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) {
    by_hash_.emplace_back(std::hash<std::string>()(head(i)), static_cast<std::uint32_t>(i));
  }
  std::sort(by_hash_.begin(), by_hash_.end());
}

std::vector<std::string> Items::arguments(std::size_t item) const {
  const Card& card = cards_.at(value(item, SweepKey::kHardware));
  const std::int64_t budget =
      sweep_budget(value(item, SweepKey::kBudgets), card.hardware.usable_bytes());
  std::vector<std::string> typed = {
      "plan",
      programs_.at(value(item, SweepKey::kPrograms)).path,
      "--card",
      card.input.path,
      "--budget",
      std::to_string(budget),
      "--policy",
      std::string(name(*find_policy(value(item, SweepKey::kPolicies)))),
      "--optimizer",
      value(item, SweepKey::kOptimizers),
      "--microbatches",
      value(item, SweepKey::kMicrobatches),
      "--schedule",
      value(item, SweepKey::kOrders),
      "--no-expandable",
      "--json"};
  if (value(item, SweepKey::kSpans) == "false") typed.emplace_back("--no-spans");
  return typed;
}

std::string Items::head(std::size_t item) const {
  const std::string& card_name = value(item, SweepKey::kHardware);
  const std::string& program = value(item, SweepKey::kPrograms);
  const Card& card = cards_.at(card_name);
  const std::int64_t cost = card.hardware.cost_per_hour;
  const Json head = {
      {"ferry", FERRY_VERSION},
      {"program", program},
      {"program_digest", programs_.at(program).digest},
      {"hardware", card_name},
      {"hardware_digest", card.input.digest},
      {"optimizer", value(item, SweepKey::kOptimizers)},
      {"microbatches", std::stoll(value(item, SweepKey::kMicrobatches))},
      {"order", value(item, SweepKey::kOrders)},
      {"spans", value(item, SweepKey::kSpans) == "true"},
      {"budget", value(item, SweepKey::kBudgets)},
      {"policy", value(item, SweepKey::kPolicies)},
      {"memory_bytes", card.hardware.memory_bytes},
      {"budget_bytes", sweep_budget(value(item, SweepKey::kBudgets), card.hardware.usable_bytes())},
      {"cost_per_hour", cost == 0 ? Json() : Json(static_cast<double>(cost) / 1000)}};
  const std::string text = head.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

std::optional<std::size_t> Items::find(std::string_view wanted) const {
  const std::size_t hash = std::hash<std::string_view>()(wanted);
  auto at = std::lower_bound(by_hash_.begin(), by_hash_.end(), std::pair(hash, std::uint32_t{0}));
  for (; at != by_hash_.end() && at->first == hash; ++at) {
    if (head(at->second) == wanted) return at->second;
  }
  return std::nullopt;
}

}  // namespace ferry::cli
