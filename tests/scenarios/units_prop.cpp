#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "scenarios/units.h"

namespace ferry {
namespace {

std::int64_t bounded(std::int64_t most) {
  return *rc::gen::resize(100, rc::gen::inRange<std::int64_t>(0, most));
}

RC_GTEST_PROP(UnitsProp, APlainIntegerIsItself, ()) {
  const std::int64_t value = bounded(std::int64_t{1} << 59);
  RC_ASSERT(parse_bytes(std::to_string(value)) == value);
  RC_ASSERT(parse_time_ns(std::to_string(value)) == value);
}

RC_GTEST_PROP(UnitsProp, DecimalsOfAUnitAreExact, ()) {
  const std::int64_t thousandths = bounded(1'000'000'000);
  std::string fraction = std::to_string(thousandths % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  const std::string text = std::to_string(thousandths / 1000) + "." + fraction;
  RC_ASSERT(parse_time_ns(text + "us") == thousandths);
  RC_ASSERT(parse_bytes(text + " kB") == thousandths);
  RC_ASSERT(parse_bytes_per_us(text + "GB/s") == thousandths);
}

// Three digits are shown: what is read back is off by less than one in the last of them.
RC_GTEST_PROP(UnitsProp, WhatATableShowsIsNearby, ()) {
  const std::int64_t value = bounded(std::int64_t{1} << 42);
  std::string shown = format_time(value);
  const std::int64_t back = parse_time_ns(shown);
  RC_ASSERT(std::abs(back - value) * 200 <= value);
}

// Whatever the text, a number or a UnitError.
RC_GTEST_PROP(UnitsProp, AnyTextIsReadOrRefused, (const std::string& text)) {
  try {
    RC_ASSERT(parse_bytes(text) >= 0);
  } catch (const UnitError&) {
  }
}

}  // namespace
}  // namespace ferry
