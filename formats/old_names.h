// Replaces old names of command-line options, before the options are parsed. Old names work for one
// more version, and a note gives the new name. Each program has its own list of old names.
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

// A renamed value of an option; it can be in a list separated by commas.
struct OldValue {
  std::string_view option;  // "--policy"
  std::string_view old;
  std::string_view now;
};

struct NewNames {
  std::vector<std::string> words;  // as typed, with the new names
  std::vector<std::string> notes;  // a line for each old name, with the new one
};

// Replaces old names in the words of a command line. An option may have its value after "=".
NewNames with_new_names(std::vector<std::string> words, std::span<const OldName> names,
                        std::span<const OldValue> values = {});

}  // namespace ferry
