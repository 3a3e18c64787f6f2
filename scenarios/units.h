// Quantities with units, exactly: "24GiB", "25GB/s", "8us", "312TFLOP/s", "1.5ms", "1000".
//
// A decimal number and a unit, with or without a space between them; a plain integer has the base
// unit. Everything is integer arithmetic: a quantity that is no whole number of base units is
// refused, not rounded ("0.5ns"). Sizes alone drop their part of a byte, so that one which a table
// printed ("1.17 GiB") can be typed. Base units: bytes, nanoseconds, bytes or floating-point
// operations a microsecond (1 GB/s is 1000), percent, thousandths of money an hour.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferry {

// what() names what was expected; readers of files add file and line.
class UnitError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

std::int64_t parse_bytes(std::string_view text);         // B kB MB GB TB KiB MiB GiB TiB
std::int64_t parse_time_ns(std::string_view text);       // ns us µs ms s
std::int64_t parse_bytes_per_us(std::string_view text);  // MB/s GB/s TB/s MiB/s GiB/s
std::int64_t parse_flops_per_us(std::string_view text);  // GFLOP/s TFLOP/s PFLOP/s
std::int64_t parse_percent(std::string_view text);       // 1% to 100%
std::int64_t parse_cost(std::string_view text);          // /h: thousandths of money an hour

// For people, rounded to three significant digits or to the unit: "24.0 GiB", "812 MiB", "1.50 ms".
std::string format_bytes(std::int64_t bytes);
std::string format_time(std::int64_t ns);
std::string format_bytes_per_us(std::int64_t rate);  // "55.6 GB/s"
std::string format_flops_per_us(std::int64_t rate);  // "312 TFLOP/s"

}  // namespace ferry
