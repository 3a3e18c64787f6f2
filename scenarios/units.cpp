#include "scenarios/units.h"

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>

namespace ferry {
namespace {

__extension__ typedef __int128 Wide;

struct Unit {
  std::string_view name;
  std::int64_t factor;       // the unit is factor / divisor base units
  std::int64_t divisor = 1;  // more than 1 for units smaller than the base unit
};

constexpr std::int64_t kKi = 1024;
constexpr std::array kByteUnits = {Unit{"B", 1},
                                   Unit{"kB", 1'000},
                                   Unit{"KB", 1'000},
                                   Unit{"MB", 1'000'000},
                                   Unit{"GB", 1'000'000'000},
                                   Unit{"TB", 1'000'000'000'000},
                                   Unit{"KiB", kKi},
                                   Unit{"MiB", kKi* kKi},
                                   Unit{"GiB", kKi* kKi* kKi},
                                   Unit{"TiB", kKi* kKi* kKi* kKi}};
constexpr std::array kTimeUnits = {Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"µs", 1'000},
                                   Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000}};
constexpr std::array kByteRateUnits = {Unit{"MB/s", 1}, Unit{"GB/s", 1'000},
                                       Unit{"TB/s", 1'000'000}, Unit{"MiB/s", kKi* kKi, 1'000'000},
                                       Unit{"GiB/s", kKi* kKi* kKi, 1'000'000}};
constexpr std::array kFlopRateUnits = {Unit{"MFLOP/s", 1}, Unit{"GFLOP/s", 1'000},
                                       Unit{"TFLOP/s", 1'000'000}, Unit{"PFLOP/s", 1'000'000'000}};
constexpr std::array kPercentUnits = {Unit{"%", 1}};
constexpr std::array kCostUnits = {Unit{"/h", 1'000}};

struct Grammar {
  std::string_view what;  // the expectation in errors, such as "a size such as 24GiB"
  std::span<const Unit> units;
  bool drops_parts = false;  // drops parts of a base unit
};

[[noreturn]] void refuse(const Grammar& grammar, std::string_view text, std::string_view why) {
  std::string names;
  for (const Unit& unit : grammar.units) {
    names += (names.empty() ? "" : " ") + std::string(unit.name);
  }
  throw UnitError("expected " + std::string(grammar.what) + " (units: " + names + "), not \"" +
                  std::string(text) + "\"" + std::string(why));
}

struct Decimal {
  std::int64_t digits = 0;  // digits without the point
  std::int64_t scale = 1;   // a power of ten: the number is digits / scale
};

// Removes the number at the front of `text` and returns it; empty if there is none or it is too
// long.
std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 10 - 1;
  Decimal result;
  bool digit_seen = false;
  bool point_seen = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !point_seen && digit_seen) {
      point_seen = true;
      digit_seen = false;  // a digit must follow
    } else if (c >= '0' && c <= '9') {
      if (result.digits > kMost || result.scale > kMost) return std::nullopt;
      result.digits = result.digits * 10 + (c - '0');
      if (point_seen) result.scale *= 10;
      digit_seen = true;
    } else {
      break;
    }
  }
  if (!digit_seen) return std::nullopt;
  text.remove_prefix(at);
  return result;
}

std::int64_t parse(std::string_view text, const Grammar& grammar) {
  std::string_view rest = text;
  const std::optional<Decimal> decimal = take_decimal(rest);
  if (!decimal) refuse(grammar, text, "");
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  Unit found{"", 1};
  for (const Unit& unit : grammar.units) {
    if (unit.name == rest) found = unit;
  }
  if (found.name != rest) refuse(grammar, text, "");
  const Wide above = Wide{decimal->digits} * found.factor;
  const Wide below = Wide{decimal->scale} * found.divisor;
  if (above % below != 0 && !grammar.drops_parts)
    refuse(grammar, text, ": not a whole number of base units");
  if (above / below > std::numeric_limits<std::int64_t>::max())
    refuse(grammar, text, ": too large");
  return static_cast<std::int64_t>(above / below);
}

constexpr std::int64_t kMostNegatable = std::numeric_limits<std::int64_t>::max();

// Formats `value` in the largest unit that is not larger, with three significant digits.
std::string format(std::int64_t value, std::span<const Unit> ascending) {
  if (value < 0) return "-" + format(value < -kMostNegatable ? kMostNegatable : -value, ascending);
  const Unit* unit = &ascending.front();
  for (const Unit& each : ascending) {
    if (value >= each.factor) unit = &each;
  }
  const std::string name = " " + std::string(unit->name);
  if (unit->factor == 1) return std::to_string(value) + name;
  const std::int64_t whole = value / unit->factor;
  const std::int64_t scale = whole < 10 ? 100 : whole < 100 ? 10 : 1;
  const auto scaled =
      static_cast<std::int64_t>((Wide{value} * scale + unit->factor / 2) / unit->factor);
  if (scale == 1) return std::to_string(scaled) + name;
  std::string fraction = std::to_string(scaled % scale);
  if (scale == 100 && fraction.size() < 2) fraction.insert(0, "0");
  return std::to_string(scaled / scale) + "." + fraction + name;
}

}  // namespace

std::int64_t parse_bytes(std::string_view text) {
  return parse(text, {"a size such as 24GiB", kByteUnits, /*drops_parts=*/true});
}

std::int64_t parse_time_ns(std::string_view text) {
  return parse(text, {"a time such as 8us", kTimeUnits});
}

std::int64_t parse_bytes_per_us(std::string_view text) {
  return parse(text, {"a rate such as 25GB/s", kByteRateUnits});
}

std::int64_t parse_flops_per_us(std::string_view text) {
  return parse(text, {"a rate such as 312TFLOP/s", kFlopRateUnits});
}

std::int64_t parse_percent(std::string_view text) {
  const Grammar grammar{"a share from 1% to 100%", kPercentUnits};
  const std::int64_t percent = parse(text, grammar);
  if (percent < 1 || percent > 100) refuse(grammar, text, "");
  return percent;
}

std::int64_t parse_cost(std::string_view text) {
  return parse(text, {"a cost such as 2.49/h", kCostUnits});
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array kUnits = {Unit{"B", 1}, Unit{"KiB", kKi}, Unit{"MiB", kKi * kKi},
                                        Unit{"GiB", kKi * kKi * kKi}};
  return format(bytes, kUnits);
}

std::string format_time(std::int64_t ns) {
  static constexpr std::array kUnits = {Unit{"ns", 1}, Unit{"us", 1'000}, Unit{"ms", 1'000'000},
                                        Unit{"s", 1'000'000'000}};
  return format(ns, kUnits);
}

std::string format_bytes_per_us(std::int64_t rate) {
  static constexpr std::array kUnits = {Unit{"MB/s", 1}, Unit{"GB/s", 1'000}};
  return format(rate, kUnits);
}

std::string format_flops_per_us(std::int64_t rate) {
  static constexpr std::array kUnits = {Unit{"MFLOP/s", 1}, Unit{"GFLOP/s", 1'000},
                                        Unit{"TFLOP/s", 1'000'000}};
  return format(rate, kUnits);
}

}  // namespace ferry
