#include "scenarios/sweep.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "formats/error.h"
#include "formats/limits.h"
#include "formats/text_file.h"
#include "scenarios/paths.h"
#include "scenarios/policy.h"
#include "scenarios/scenario.h"
#include "scenarios/toml_fields.h"
#include "scenarios/units.h"

namespace ferry {
namespace {

constexpr std::size_t kKeys = kSweepKeys.size();
constexpr std::uint64_t kMostItems = 1'000'000;
constexpr std::int64_t kMostMicrobatches = 4096;

constexpr std::size_t at(SweepKey key) { return static_cast<std::size_t>(key); }

std::vector<std::string> read_values(TomlFields& file, const std::string& key, SweepKey of) {
  if (of == SweepKey::kMicrobatches) return file.integers(key);
  if (of == SweepKey::kSpans) return file.booleans(key);
  return file.texts(key);
}

std::string listed(const auto& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += name == names.back() ? " or " : ", ";
    text += name;
  }
  return text;
}

// Says what a value of that list must be; empty if the value is allowed.
std::string objection(SweepKey key, const std::string& value) {
  const auto one_of = [&](const auto& names) {
    const bool known = std::find(names.begin(), names.end(), value) != names.end();
    return known ? "" : listed(names);
  };
  switch (key) {
    case SweepKey::kOptimizers:
      return one_of(kOptimizers);
    case SweepKey::kOrders:
      return one_of(kMicrobatchOrders);
    case SweepKey::kPolicies:
      return find_policy(value) ? "" : list_of_policies();
    case SweepKey::kMicrobatches: {
      std::int64_t number = 0;
      std::from_chars(value.data(), value.data() + value.size(), number);
      return number >= 1 && number <= kMostMicrobatches ? "" : "integers from 1 to 4096";
    }
    case SweepKey::kBudgets:
      try {
        const std::int64_t bytes = sweep_budget(value, limits::kBytes);
        if (bytes <= 0) return "more than 0";
        return bytes <= limits::kBytes ? "" : "at most " + format_bytes(limits::kBytes);
      } catch (const UnitError& error) {
        return std::string("\"card\", a share such as 80%, or a size: ") + error.what();
      }
    default:
      return value.empty() ? "names that are not empty" : "";
  }
}

SweepList read_list(TomlFields& file, SweepKey key) {
  const std::string name(kSweepKeys[at(key)]);
  SweepList list{.values = read_values(file, name, key), .line = file.line_of(name)};
  std::set<std::string> distinct;
  for (const std::string& value : list.values) {
    if (!distinct.insert(value).second) file.expected(name, "each one once");
    const std::string what = objection(key, value);
    if (!what.empty()) file.expected(name, what);
  }
  return list;
}

SweepList default_list(SweepKey key) {
  constexpr std::array<const char*, kKeys> kDefaults = {"",     "",     "adamw", "1",
                                                        "fbfb", "true", "card",  "best"};
  return {.values = {kDefaults[at(key)]}, .line = 0};
}

// For each list, which values match. An empty row matches all.
using Filter = std::array<std::vector<bool>, kKeys>;

std::vector<Filter> read_filters(TomlFields& file, const std::string& name, const Sweep& sweep) {
  std::vector<Filter> filters;
  for (bool found = true; found;) {
    found = false;
    Filter filter;
    for (std::size_t i = 0; i < kKeys; ++i) {
      const std::string key =
          name + "[" + std::to_string(filters.size()) + "]." + std::string(kSweepKeys[i]);
      if (!file.has(key)) continue;
      found = true;
      const std::vector<std::string>& values = sweep.lists[i].values;
      filter[i].resize(values.size());
      for (const std::string& value : read_values(file, key, static_cast<SweepKey>(i))) {
        const auto place = std::find(values.begin(), values.end(), value);
        if (place == values.end()) {
          file.expected(key, "values of the list above, not \"" + value + "\"");
        }
        filter[i][static_cast<std::size_t>(place - values.begin())] = true;
      }
    }
    if (found) filters.push_back(std::move(filter));
  }
  return filters;
}

bool matches(const Filter& filter, const SweepItem& item) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    if (!filter[i].empty() && !filter[i][item[i]]) return false;
  }
  return true;
}

// Moves on to the next combination; returns false after the last one.
bool advance(SweepItem& item, const Sweep& sweep) {
  for (std::size_t i = kKeys; i-- > 0; item[i] = 0) {
    if (++item[i] < sweep.lists[i].values.size()) return true;
  }
  return false;
}

std::vector<SweepItem> combinations(TomlFields& file, const Sweep& sweep) {
  const std::vector<Filter> skip = read_filters(file, "skip", sweep);
  const std::vector<Filter> only = read_filters(file, "only", sweep);
  std::uint64_t count = 1;
  for (const SweepList& list : sweep.lists) {
    count *= list.values.size();  // no overflow: both are bounded
    if (count <= kMostItems) continue;
    throw InputError(sweep.file, 0, "expected at most 1000000 combinations");
  }
  std::vector<SweepItem> items;
  SweepItem item{};
  do {
    const auto is_matched = [&item](const Filter& filter) { return matches(filter, item); };
    if (std::any_of(skip.begin(), skip.end(), is_matched)) continue;
    if (only.empty() || std::any_of(only.begin(), only.end(), is_matched)) items.push_back(item);
  } while (advance(item, sweep));
  if (items.empty()) {
    throw InputError(sweep.file, 0,
                     "expected at least one item: [[skip]] and [[only]] leave out all");
  }
  return items;
}

}  // namespace

std::string Sweep::found_by(const std::string& value) const { return beside(value, file); }

Sweep parse_sweep(std::string_view text, const std::string& path) {
  TomlFields file(text, path);
  Sweep sweep;
  sweep.file = path;
  sweep.description = file.text_or("description", "");
  for (std::size_t i = 0; i < kKeys; ++i) {
    const auto key = static_cast<SweepKey>(i);
    const bool needed = key == SweepKey::kPrograms || key == SweepKey::kHardware;
    const bool there = file.has(std::string(kSweepKeys[i]));
    sweep.lists[i] = needed || there ? read_list(file, key) : default_list(key);
  }
  sweep.items = combinations(file, sweep);
  file.finish();
  return sweep;
}

Sweep read_sweep(const std::filesystem::path& path) {
  return parse_sweep(read_file(path), path.string());
}

std::int64_t sweep_budget(std::string_view budget, std::int64_t memory_bytes) {
  if (budget == "card") return memory_bytes;
  if (!budget.ends_with('%')) return parse_bytes(budget);
  const std::int64_t percent = parse_percent(budget);
  return memory_bytes / 100 * percent + memory_bytes % 100 * percent / 100;
}

}  // namespace ferry
