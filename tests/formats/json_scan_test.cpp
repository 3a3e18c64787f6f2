#include "formats/json_scan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ferry {
namespace {

using Kind = JsonValue::Kind;

std::string error_of(std::string_view text) {
  JsonScan scan(text);
  try {
    scan.value();
    scan.finish();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonScan, ReadsWhatAValueIs) {
  const auto value = [](std::string_view text) { return JsonScan(text).value(); };
  EXPECT_EQ(value(" true").kind, Kind::kTrue);
  EXPECT_EQ(value("false").kind, Kind::kFalse);
  EXPECT_EQ(value("null").kind, Kind::kNull);
  EXPECT_EQ(value("18446744073709551615").magnitude, ~std::uint64_t{0});
  EXPECT_EQ(value("18446744073709551615").kind, Kind::kInteger);
  EXPECT_EQ(value("18446744073709551616").kind, Kind::kNumber);
  EXPECT_EQ(value("-7").magnitude, 7u);
  EXPECT_TRUE(value("-7").negative);
  EXPECT_EQ(value("7.0").kind, Kind::kNumber);
  EXPECT_EQ(value("7e1").kind, Kind::kNumber);
  EXPECT_EQ(value("[1, [2]]x").text, "[1, [2]]");
  EXPECT_EQ(value("{\"a\":{}}").kind, Kind::kObject);
}

TEST(JsonScan, DecodesTexts) {
  JsonScan scan(R"(["plain", "a\"\\\/\b\f\n\r\t", "\u0041\u00e9\u20ac\ud83d\ude00", "é€😀", ""])");
  scan.open('[');
  for (const char* text : {"plain", "a\"\\/\b\f\n\r\t", "Aé€😀", "é€😀", ""}) {
    ASSERT_TRUE(scan.next_element());
    EXPECT_EQ(scan.value().text, text);
  }
  EXPECT_FALSE(scan.next_element());
}

TEST(JsonScan, SaysWhatItExpectedAndWhere) {
  EXPECT_EQ(error_of("{\"a\" 1}"), "expected ':' at column 6");
  EXPECT_EQ(error_of("{\"a\":1,}"), "expected a key in double quotes at column 8");
  EXPECT_EQ(error_of("{\"a\":1 \"b\":2}"), "expected ',' or '}' at column 8");
  EXPECT_EQ(error_of("[1,]"), "expected a value at column 4");
  EXPECT_EQ(error_of("[1"), "expected ',' or ']' at column 3");
  EXPECT_EQ(error_of("01"), "expected no digit after a leading 0 at column 2");
  EXPECT_EQ(error_of("-"), "expected a digit at column 2");
  EXPECT_EQ(error_of("1 2"), "expected the end of the line at column 3");
  EXPECT_EQ(error_of("\"a"), "expected '\"' at column 3");
  EXPECT_EQ(error_of("\"\\x\""), "expected an escape: \" \\ / b f n r t u at column 3");
  EXPECT_EQ(error_of("\"\\ud800\""), "expected '\\' at column 8");
  EXPECT_EQ(error_of("\"\xc0\x80\""), "expected UTF-8 at column 2");
  EXPECT_EQ(error_of("tru"), "expected a value at column 1");
  EXPECT_EQ(error_of("[1,\n 2,\n }"), "expected a value at column 2") << "of its line";
}

// A profiler's "blocks per SM" was inf, and a pickle's neighbour had 40 digits: nobody needs them.
TEST(JsonScan, WhatNobodyNeedsMayBeAnything) {
  for (const std::string text :
       {"1e999", "-1e999", "1e-999", "NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"}) {
    EXPECT_EQ(error_of(text), "") << text;
    EXPECT_EQ(error_of("{\"a\":[" + text + "]}"), "") << text;
    EXPECT_EQ(JsonScan(text).value().kind, Kind::kNumber) << text;
  }
  EXPECT_EQ(JsonScan(std::string(40, '9')).value().kind, Kind::kNumber);
  constexpr std::size_t kDeep = 1'000'000;
  EXPECT_EQ(error_of(std::string(kDeep, '[') + std::string(kDeep, ']')), "");
  EXPECT_EQ(error_of(std::string(kDeep, '[')), "expected a value at column 1000001");
  EXPECT_EQ(error_of("\"" + std::string(kDeep, 'x') + "\""), "");
}

// Letters of JSON, bytes of UTF-8, or escapes, in any order; or a value with one byte changed.
std::string draw_text() {
  const auto some = [](int most, const std::vector<std::string>& parts) {
    std::string text;
    for (int i = *rc::gen::inRange(0, most + 1); i > 0; --i) text += *rc::gen::elementOf(parts);
    return text;
  };
  switch (*rc::gen::inRange(0, 4)) {
    case 0:
      return some(8, {"{", "}", "[", "]", ":", ",", "\"", "\"a\"", "0", "10", "-", ".", "e-", "+",
                      " ", "true", "false", "null", "nul"});
    case 1:
      return '"' +
             some(1, {"\xc0", "\xc1", "\xc2", "\xdf", "\xe0", "\xe1", "\xed", "\xef", "\xf0",
                      "\xf1", "\xf4", "\xf5", "a"}) +
             some(3, {"\x7f", "\x80", "\x8f", "\x90", "\x9f", "\xa0", "\xbf", "\xc0"}) + '"';
    case 2:
      return '"' + some(3, {"\\ud800", "\\udbff", "\\udc00", "\\udfff", "\\u0041", "\\n", "\\x"}) +
             '"';
    default: {
      std::string text =
          R"({"a":[1,-2.5e3,"x\u00e9\ud83d\ude00é",{"b":null}],"c":[true,false,{}]})";
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
      return text;
    }
  }
}

TEST(JsonScan, AcceptsWhatNlohmannAccepts) {
  EXPECT_TRUE(rc::check("the same verdict on any text", [] {
    for (int i = 0; i < 100; ++i) {
      const std::string text = *rc::gen::resize(100, rc::gen::exec(draw_text));
      RC_ASSERT(error_of(text).empty() == nlohmann::json::accept(text));
    }
  }));
}

}  // namespace
}  // namespace ferry
