// Names that options of the command line had: they go on working for one version, and what was
// typed is told in the new ones.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

struct OldName {
  std::string_view old;  // "--hardware"
  std::string_view now;  // "--card"
};

struct NewNames {
  std::vector<std::string> words;  // as typed, with the new names
  std::vector<std::string> notes;  // a line for each old name: what it is called now
};

// An option may have its value behind "=".
NewNames with_new_names(std::vector<std::string> words, std::span<const OldName> names);

}  // namespace ferry
