// Parses and formats quantities with units: "24GiB", "25GB/s", "8us", "312TFLOP/s", "1.5ms",
// "1000".
//
// A quantity is a decimal number and a unit, with or without a space between them; a plain integer
// has the base unit. All arithmetic is in integers. A quantity that is not a whole number of base
// units ("0.5ns") is rejected with an error, not rounded. Only sizes are rounded down to bytes, so
// that a size from a table ("1.17 GiB") can be typed. The base units are bytes, nanoseconds, bytes
// or floating-point operations per microsecond (1 GB/s is 1000), percent, and thousandths of a
// price per hour.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ferry {

// what() says what was expected. Readers of files add file and line.
class UnitError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

std::int64_t parse_bytes(std::string_view text);         // B kB KB MB GB TB KiB MiB GiB TiB
std::int64_t parse_time_ns(std::string_view text);       // ns us µs ms s
std::int64_t parse_bytes_per_us(std::string_view text);  // MB/s GB/s TB/s MiB/s GiB/s
std::int64_t parse_flops_per_us(std::string_view text);  // MFLOP/s GFLOP/s TFLOP/s PFLOP/s
std::int64_t parse_percent(std::string_view text);       // 1% to 100%
std::int64_t parse_cost(std::string_view text);          // /h: price per hour, in thousandths

// These round to three significant digits or to the unit: "24.0 GiB", "812 MiB", "1.50 ms".
std::string format_bytes(std::int64_t bytes);
std::string format_time(std::int64_t ns);
std::string format_bytes_per_us(std::int64_t rate);  // "55.6 GB/s"
std::string format_flops_per_us(std::int64_t rate);  // "312 TFLOP/s"

}  // namespace ferry
