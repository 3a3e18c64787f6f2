// The overloads that are not the same to the bit, each with its reason: a file that is kept by
// hand, and checked by every sweep.
//
// A line is `VERDICT | OVERLOAD | WHY`; `#` begins a comment.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/real/sweep/sweep.h"

namespace ferry::sweep {

inline constexpr std::size_t kListedMax = 30;

struct Listed {
  Verdict verdict;
  std::string why;
};
using List = std::map<std::string, Listed>;

// Throws std::runtime_error with file and line, and where there are more than kListedMax.
List read_list(const std::filesystem::path& path);

// What a sweep says that the list does not, a line each. `all`: what the list says and the sweep
// does not, too; a quick one does not come to everything.
std::vector<std::string> faults(const List& list, const std::map<std::string, Tried>& tried,
                                bool all);

}  // namespace ferry::sweep
