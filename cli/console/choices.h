// Options whose value is one of a few names: typed in any case, and with an error that names the
// option, lists the names and asks for the nearest one.
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

// The index of the typed name among the names.
inline std::size_t choice(const std::string& option, const std::string& typed,
                          const std::vector<std::string>& names) {
  if (const auto found = find_name(typed, names)) return *found;
  throw InputError(
      option, 0,
      "expected " + listed(names) + ", got '" + typed + "'" + did_you_mean(typed, names));
}

// Spelled as in the list.
inline std::vector<std::string> chosen(const std::string& option, std::vector<std::string> typed,
                                       const std::vector<std::string>& names) {
  for (std::string& each : typed) each = names[choice(option, each, names)];
  return typed;
}

}  // namespace ferry::cli
