// Checks of what is typed on the command line, whose errors say what was expected.
#pragma once

#include <CLI/CLI.hpp>
#include <limits>
#include <string>

#include "formats/typed_number.h"

namespace ferry::cli {

template <class Whole>
CLI::Validator whole_number(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  return {[=](std::string& text) { return not_whole(text, least, most); }, ""};
}

inline CLI::Validator above_zero() {
  return {[](std::string& text) { return not_above_zero(text); }, ""};
}

// Refuses an empty text: such an option has lost its argument.
inline CLI::Validator some_text() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "expected a name, not nothing" : "";
          },
          ""};
}

}  // namespace ferry::cli
