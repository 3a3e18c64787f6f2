// What a log says of memory that the host was given (`host_view`): which views are unjudged.
#include "sim/check/views.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using Lines = std::vector<std::string>;

std::string copied(const std::string& keys) {
  return R"({"op":"copy","stream":"s","src":"d","src_kind":"device","dst_kind":"pinned","dst":)" +
         keys + "}";
}

// "2<3": the view of line 2, for the work of line 3. "| N" where N views were unjudged in all.
std::string unjudged(const Lines& lines) {
  const LogReport report = test::report_of(lines);
  std::string text;
  for (const TraceUnjudged& each : report.unjudged) {
    text += (text.empty() ? "" : " ") + std::to_string(each.view_line) + "<" +
            std::to_string(each.line);
  }
  if (report.unjudged_views != report.unjudged.size()) {
    text += " | " + std::to_string(report.unjudged_views);
  }
  EXPECT_TRUE(report.violations.empty());
  return text;
}

TEST(Views, WorkWhileThereIsAViewOfItsBytesLeavesItUnjudged) {
  EXPECT_EQ(unjudged({"HV X", "W s X"}), "1<2");
  EXPECT_EQ(unjudged({"HV x", "R s x", "sync s"}), "1<2");
  EXPECT_EQ(unjudged({"HV X", copied(R"({"address":24008,"bytes":2})")}), "1<2");
  EXPECT_EQ(unjudged({"HV X", "HV X", "W s X"}), "1<3 | 2");
}

TEST(Views, WorkThatAViewBeganUnderLeavesItUnjudged) {
  EXPECT_EQ(unjudged({"W s X", "HV X", "sync s"}), "2<1");
  EXPECT_EQ(unjudged({"R s X", "HV X"}), "2<1");
  EXPECT_EQ(unjudged({"W s X", "sync s", "HV X"}), "");
  EXPECT_EQ(unjudged({"HW X", "HV X", "@t HV X"}), "");
}

TEST(Views, AViewThatNoWorkMeetsIsJudged) {
  EXPECT_EQ(unjudged({"HV X", "W s Y"}), "");
  EXPECT_EQ(unjudged({"HV X", "HE X", "W s X"}), "");
  EXPECT_EQ(unjudged({"HV X", "HV X", "HE X", "W s X"}), "1<4");
  EXPECT_EQ(unjudged({"HE X", "HV X", "W s X"}), "2<3");
  EXPECT_EQ(unjudged({"HV X", copied(R"({"address":24000,"bytes":8},"blocked":true)")}), "");
}

TEST(Views, OneOfManyIsFoundByItsBytes) {
  Lines lines{R"({"op":"host_view","buffer":{"address":0,"bytes":4000}})"};
  for (int i = 1; i < 100; ++i) {
    lines.push_back(R"({"op":"host_view","buffer":{"address":)" + std::to_string(i * 4000) +
                    R"(,"bytes":8},"where":"v.py:)" + std::to_string(i) + "\"}");
  }
  lines.push_back(
      R"({"op":"kernel","stream":"s","reads":[{"address":3998,"bytes":2}],"writes":[{"address":40007,"bytes":100}]})");
  EXPECT_EQ(unjudged(lines), "1<101 11<101");
}

TEST(Views, ANamedBufferIsRememberedForItsView) {
  Lines lines{"HV x"};
  for (int i = 0; i < 3000; ++i) lines.insert(lines.end(), {"W s y" + std::to_string(i), "sync s"});
  lines.emplace_back("W s x");
  EXPECT_EQ(unjudged(lines), "1<6002");
}

TEST(Views, PlacesOfTheProgramAreCountedOnce) {
  Lines lines;
  for (int i = 0; i < 5; ++i) {
    lines.insert(lines.end(), {R"({"op":"host_view","buffer":"x","where":"a.py:1"})", "W s x",
                               R"({"op":"host_view_end","buffer":"x"})", "sync s"});
  }
  const LogReport report = test::report_of(lines);
  ASSERT_EQ(report.unjudged.size(), 1u);
  EXPECT_EQ(report.unjudged[0].count, 5u);
  EXPECT_EQ(report.views, 5u);
  EXPECT_EQ(report.unjudged[0].message,
            "host_view at a.py:1 (line 1): what the host does through this view is not seen, and "
            "kernel on stream \"s\" (line 2) may use the same bytes meanwhile");
}

}  // namespace
}  // namespace ferry::check
