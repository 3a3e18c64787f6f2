#include "scenarios/units.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

template <class Parse>
std::string error_of(Parse parse, std::string_view text) {
  try {
    parse(text);
  } catch (const UnitError& error) {
    return error.what();
  }
  return "";
}

TEST(UnitsTest, QuantitiesAreExact) {
  EXPECT_EQ(parse_bytes("24GiB"), std::int64_t{24} << 30);
  EXPECT_EQ(parse_bytes("1.5 KiB"), 1536);
  EXPECT_EQ(parse_bytes("512"), 512);
  EXPECT_EQ(parse_bytes("80GB"), 80'000'000'000);
  EXPECT_EQ(parse_time_ns("8us"), 8'000);
  EXPECT_EQ(parse_time_ns("1.5ms"), 1'500'000);
  EXPECT_EQ(parse_time_ns("0.000000001s"), 1);
  EXPECT_EQ(parse_bytes_per_us("25GB/s"), 25'000);
  EXPECT_EQ(parse_bytes_per_us("55.6GB/s"), 55'600);  // no double is 55.6
  EXPECT_EQ(parse_bytes_per_us("3.35TB/s"), 3'350'000);
  EXPECT_EQ(parse_bytes_per_us("15625GiB/s"), 16'777'216);
  EXPECT_EQ(parse_flops_per_us("989.4TFLOP/s"), 989'400'000);
  EXPECT_EQ(parse_percent("65%"), 65);
}

// A table says 1.17 GiB, and that was refused as a budget.
TEST(UnitsTest, SizesDropTheirPartOfAByte) {
  EXPECT_EQ(parse_bytes("1.17GiB"), 1'256'277'934);  // and 0.08
  EXPECT_EQ(parse_bytes("0.9B"), 0);
}

TEST(UnitsTest, ErrorsNameWhatWasExpected) {
  EXPECT_EQ(error_of(parse_bytes, "24 giga"),
            "expected a size such as 24GiB (units: B kB KB MB GB TB KiB MiB GiB TiB), not \"24 "
            "giga\"");
  EXPECT_EQ(
      error_of(parse_time_ns, "0.5ns"),
      "expected a time such as 8us (units: ns us µs ms s), not \"0.5ns\": not a whole number of "
      "base units");
  for (const char* text : {"", "GiB", ".5GiB", "5.GiB", "-1GiB", "1e3", "0x10", "1 2", "1GiB ",
                           " 1GiB", "1.2.3GiB", "99999999999999999999", "9223372036854775807TiB"}) {
    EXPECT_NE(error_of(parse_bytes, text), "") << text;
  }
  EXPECT_NE(error_of(parse_bytes_per_us, "25Gb/s"), "");
  EXPECT_NE(error_of(parse_bytes_per_us, "1GiB/s"), "");  // 1073.74… bytes a microsecond
  EXPECT_NE(error_of(parse_percent, "0%"), "");
  EXPECT_NE(error_of(parse_percent, "101"), "");
}

TEST(UnitsTest, TablesShowThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(std::int64_t{24} << 30), "24.0 GiB");
  EXPECT_EQ(format_bytes(std::int64_t{812} << 20), "812 MiB");
  EXPECT_EQ(format_bytes(-1536), "-1.50 KiB");
  EXPECT_EQ(format_time(999), "999 ns");
  EXPECT_EQ(format_time(1'005'000), "1.01 ms");  // halves go up
  EXPECT_EQ(format_time(99'990'000), "100.0 ms");
  EXPECT_EQ(format_time(123'456'789'000), "123 s");
  EXPECT_EQ(format_bytes_per_us(55'600), "55.6 GB/s");
  EXPECT_EQ(format_flops_per_us(989'400'000), "989 TFLOP/s");
}

}  // namespace
}  // namespace ferry
