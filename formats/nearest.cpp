#include "formats/nearest.h"

#include <algorithm>
#include <utility>

namespace ferry {
namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_same(char a, char b) { return lower(a) == lower(b); }

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return is_same(x, y); });
}

}  // namespace

std::size_t slips(std::string_view a, std::string_view b) {
  // Row i holds the distances of the first i letters of `a` to every beginning of `b`.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t other = is_same(a[i - 1], b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      const bool swapped =
          i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::size_t> find_name(std::string_view typed,
                                     const std::vector<std::string>& names) {
  auto found = std::find(names.begin(), names.end(), typed);
  if (found == names.end()) {
    found = std::find_if(names.begin(), names.end(),
                         [&](const std::string& name) { return is_same(typed, name); });
  }
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::string did_you_mean(std::string_view typed, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 100;  // no mistyped name is longer
  if (typed.size() > kLongest) return "";
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(typed.size() / 3, 1) + 1;
  for (const std::string& name : names) {
    const std::size_t distance = slips(typed, name);
    if (distance > least || distance >= typed.size()) continue;
    // If two are equally near, prefer the one with the same first letter, which is seldom wrong.
    const bool alike = !typed.empty() && !name.empty() && is_same(typed[0], name[0]);
    if (distance == least && (!nearest || !alike || is_same(typed[0], (*nearest)[0]))) continue;
    least = distance;
    nearest = &name;
  }
  return nearest ? ": did you mean '" + *nearest + "'?" : "";
}

}  // namespace ferry
