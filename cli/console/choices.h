// Parses options whose value is one of a few names. Upper and lower case are the same. The error
// for an unknown name gives the option, the allowed names and the nearest one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/nearest.h"

namespace ferry::cli {

// "a, b or c".
inline std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

// Takes any range of texts.
template <class Texts>
std::vector<std::string> names_of(const Texts& texts) {
  return {std::begin(texts), std::end(texts)};
}

// Returns the index of the typed name in the list. Throws InputError if it is not there.
inline std::size_t choice(const std::string& option, const std::string& typed,
                          const std::vector<std::string>& names) {
  if (const auto found = find_name(typed, names)) return *found;
  throw InputError(
      option, 0,
      "expected " + listed(names) + ", got '" + typed + "'" + did_you_mean(typed, names));
}

// Returns the typed names, spelled as in the list. Throws InputError for one that is not there.
inline std::vector<std::string> chosen(const std::string& option, std::vector<std::string> typed,
                                       const std::vector<std::string>& names) {
  for (std::string& each : typed) each = names[choice(option, each, names)];
  return typed;
}

}  // namespace ferry::cli
