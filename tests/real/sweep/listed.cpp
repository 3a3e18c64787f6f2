#include "tests/real/sweep/listed.h"

#include <array>
#include <fstream>
#include <stdexcept>

namespace ferry::sweep {
namespace {

constexpr std::array kMayBeListed = {Verdict::kNotCalled, Verdict::kUnstable, Verdict::kDifferent};

Verdict verdict_of(const std::string& word, const std::string& where) {
  for (const Verdict verdict : kMayBeListed) {
    if (word == text(verdict)) return verdict;
  }
  throw std::runtime_error(where + "expected not called, unstable or different, got " + word);
}

bool needs_a_reason(const Tried& tried) {
  return std::ranges::find(kMayBeListed, tried.verdict) != kMayBeListed.end() && !tried.by_rule;
}

}  // namespace

List read_list(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read; expected a list");
  List list;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const std::string where = path.string() + ":" + std::to_string(number) + ": ";
    const std::size_t first = line.find(" | "), second = line.find(" | ", first + 3);
    if (first == std::string::npos || second == std::string::npos) {
      throw std::runtime_error(where + "expected VERDICT | OVERLOAD | WHY");
    }
    const Listed listed{verdict_of(line.substr(0, first), where), line.substr(second + 3)};
    if (!list.emplace(line.substr(first + 3, second - first - 3), listed).second) {
      throw std::runtime_error(where + "expected an overload once, got it again");
    }
  }
  if (list.size() > kListedMax) {
    throw std::runtime_error(path.string() + ": expected at most " + std::to_string(kListedMax) +
                             " overloads, got " + std::to_string(list.size()));
  }
  return list;
}

std::vector<std::string> faults(const List& list, const std::map<std::string, Tried>& tried,
                                bool all) {
  std::vector<std::string> found;
  for (const auto& [name, result] : tried) {
    const auto listed = list.find(name);
    if (!all && result.verdict == Verdict::kNotCalled) continue;
    // What differs from itself may do so in a run with Ferry and not in the two without.
    const bool known =
        listed != list.end() &&
        (listed->second.verdict == result.verdict ||
         (listed->second.verdict == Verdict::kUnstable && result.verdict == Verdict::kDifferent));
    if (needs_a_reason(result) && !known) {
      found.push_back(name + " is " + text(result.verdict) + ", and not listed so: " + result.why);
    }
  }
  for (const auto& [name, listed] : list) {
    const auto result = tried.find(name);
    // Two plain runs may also happen to agree.
    const bool met =
        result != tried.end() &&
        (result->second.verdict == listed.verdict ||
         (listed.verdict == Verdict::kUnstable && result->second.verdict == Verdict::kEqual));
    if (all && !met) {
      found.push_back(name + " is listed as " + text(listed.verdict) + ", and is " +
                      (result == tried.end() ? "no overload" : text(result->second.verdict)));
    }
  }
  return found;
}

}  // namespace ferry::sweep
