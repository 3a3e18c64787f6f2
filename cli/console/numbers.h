// Validators for values on the command line. Their errors say what was expected.
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

// Rejects an empty text: the option has lost its argument.
inline CLI::Validator some_text() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "expected a name, got an empty text" : "";
          },
          ""};
}

}  // namespace ferry::cli
