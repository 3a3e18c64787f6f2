// Parses numbers that people type as values of options; the error says what was expected. (CLI11's
// own checks replace a number that is out of range by the nearest valid one.)
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>

namespace ferry {

// True if the whole text is a number that fits the type.
template <class Number>
bool is_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && read == end;
}

// These return what is wrong with the text; empty if nothing is.
template <class Whole>
std::string not_whole(const std::string& text, Whole least,
                      Whole most = std::numeric_limits<Whole>::max()) {
  Whole number{};
  if (is_number(text, number) && number >= least && number <= most) return {};
  return "'" + text + "': expected a whole number from " + std::to_string(least) + " to " +
         std::to_string(most);
}
inline std::string not_above_zero(const std::string& text) {
  double number = 0;
  if (is_number(text, number) && number > 0 && std::isfinite(number)) return {};
  return "'" + text + "': expected a number above 0";
}

}  // namespace ferry
