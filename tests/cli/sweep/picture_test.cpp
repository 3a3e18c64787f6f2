#include "cli/sweep/picture.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ferry::cli {
namespace {

nlohmann::ordered_json line(const std::string& program, const std::string& hardware,
                            long long bytes, long long step_ns) {
  return {{"program", program},       {"hardware", hardware}, {"optimizer", "adamw"},
          {"microbatches", 1},        {"order", "fbfb"},      {"budget", "card"},
          {"policy", "keep"},         {"spans", false},       {"outcome", "fits"},
          {"cost_per_hour", nullptr}, {"step_ns", step_ns},   {"device_reserved_bytes", bytes}};
}

int count(const std::string& text, const std::string& part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(PictureTest, EveryWayThatFitsIsAPointAndTheBestAreJoined) {
  Fronts fronts;
  fronts.add(line("a", "x", 1 << 30, 4'000'000));
  fronts.add(line("a", "y", 1 << 29, 8'000'000));
  fronts.add(line("a", "y", 1 << 30, 8'000'000));  // beaten
  const std::string page = picture_of("s.toml", fronts.all());
  EXPECT_EQ(count(page, "<title>x, budget card"), 1);
  EXPECT_EQ(count(page, "<title>y, budget card"), 2);
  EXPECT_EQ(count(page, " beaten\""), 1);
  // From the fastest to the smallest: the most memory is at the right, the most time at the top.
  EXPECT_NE(page.find("points=\"744,182 410,12 \""), page.npos) << page;
}

TEST(PictureTest, NamesAreEscapedAndNothingComesFromElsewhere) {
  Fronts fronts;
  fronts.add(line("<b>&", "\"><script>", 1, 1));
  const std::string page = picture_of("<s>.toml", fronts.all());
  EXPECT_EQ(page.find("<script"), page.npos) << page;
  EXPECT_EQ(page.find("<b>"), page.npos);
  EXPECT_NE(page.find("<h2>&lt;b&gt;&amp;</h2>"), page.npos) << page;
  EXPECT_EQ(page.find("http"), page.npos);
}

TEST(PictureTest, WhereNothingFitsItSaysSo) {
  Fronts fronts;
  nlohmann::ordered_json none = line("a", "x", 0, 0);
  none["outcome"] = "does not fit";
  fronts.add(none);
  EXPECT_NE(picture_of("s", fronts.all()).find("<p>Nothing fits.</p>"), std::string::npos);
}

}  // namespace
}  // namespace ferry::cli
