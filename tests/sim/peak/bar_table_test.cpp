#include "sim/peak/bar_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::peak {
namespace {

TEST(BarTable, TheLargestIsFirstAndTheBarsAreShares) {
  const BarTable table{.titles = {}, .text_title = "who", .whole_bytes = 1000};
  EXPECT_EQ(to_text(table, {{250, 1, {}, "b"}, {750, 12, {}, "a"}}),
            "      bytes    share                         blocks  who\n"
            "      750 B   75.0 %  ###############            12  a\n"
            "      250 B   25.0 %  #####                       1  b\n");
}

TEST(BarTable, WhatIsLeftOutIsALineAtTheEnd) {
  const BarTable table{.titles = {}, .text_title = "who", .whole_bytes = 100, .lines_most = 2};
  const std::string text = to_text(table, {{20, 2, {}, "c"}, {50, 1, {}, "a"}, {30, 3, {}, "b"}});
  EXPECT_NE(text.find("50.0 %  ##########                  1  a\n"), std::string::npos) << text;
  EXPECT_NE(text.find("50.0 %  ##########                  5  in 2 others\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("  b\n"), std::string::npos);
}

TEST(BarTable, ATinyPartStillHasABarAndNothingHasNone) {
  const BarTable table{.titles = {"x"}, .text_title = "who", .whole_bytes = 1'000'000};
  const std::string text = to_text(table, {{1, 1, {"long"}, "a"}, {0, 0, {}, "none"}});
  EXPECT_NE(text.find("0.0 %  #                           1  long  a\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("0.0 %                              0        none\n"), std::string::npos)
      << text;
}

TEST(BarTable, SharesOfTheLargestNumbersDoNotOverflow) {
  EXPECT_EQ(share(std::int64_t{1} << 61, std::int64_t{1} << 62), "50.0 %");
  EXPECT_EQ(share(1, 3), "33.3 %");
  EXPECT_EQ(share(2, 3), "66.7 %");
}

}  // namespace
}  // namespace ferry::peak
