// Checks of numbers on the command line, whose errors say what was expected. (CLI11's own replace a
// number that does not fit by the nearest one that does.)
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

namespace ferry::cli {

template <class Number>
bool is_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end;
}

template <class Whole>
CLI::Validator whole_number(Whole least, Whole most = std::numeric_limits<Whole>::max()) {
  return {[=](std::string& text) -> std::string {
            Whole number{};
            if (is_number(text, number) && number >= least && number <= most) return {};
            return "'" + text + "': expected a whole number from " + std::to_string(least) +
                   " to " + std::to_string(most);
          },
          ""};
}

inline CLI::Validator above_zero() {
  return {[](std::string& text) -> std::string {
            double number = 0;
            if (is_number(text, number) && number > 0 && std::isfinite(number)) return {};
            return "'" + text + "': expected a number above 0";
          },
          ""};
}

// Refuses an empty text: such an option has lost its argument.
inline CLI::Validator some_text() {
  return {[](std::string& text) -> std::string {
            return text.empty() ? "expected a name, not nothing" : "";
          },
          ""};
}

}  // namespace ferry::cli
