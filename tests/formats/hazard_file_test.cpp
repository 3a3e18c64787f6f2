// Hazard files: read as they were written, and what is wrong is refused with its line.
#include "formats/hazard_file.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/error.h"

namespace ferry {
namespace {

const std::string kBegin =
    R"({"ferry":"hazard","schema":1,"system":"one","what":"two","source":"",)";
const std::string kVerdict = R"("verdicts":[{"kind":"reuse","earlier":2,"later":3}])";
const std::string kLog = R"({"op":"kernel","stream":"a","reads":[],"writes":["x"]}
{"op":"kernel","stream":"b","reads":["x"],"writes":[]}
)";

TEST(HazardFileTest, IsReadAsItWasWritten) {
  const HazardFile hazard = parse_hazard(kBegin + kVerdict +
                                             R"(,"schedule":"2@3 2r@3","seen":"é"})"
                                             "\n" +
                                             kLog,
                                         "file");
  EXPECT_EQ(hazard.system, "one");
  EXPECT_EQ(hazard.what, "two");
  EXPECT_EQ(hazard.source, "");
  EXPECT_EQ(hazard.verdicts, (std::vector<HazardVerdict>{{"reuse", 2, 3}}));
  EXPECT_EQ(hazard.schedule, "2@3 2r@3");
  EXPECT_EQ(hazard.seen, "é");
  EXPECT_EQ(hazard.log, kLog);
  const std::string text = to_text(hazard);
  EXPECT_EQ(to_text(parse_hazard(text, "file")), text);
  std::vector<std::uint64_t> lines;
  hazard.each([&lines](std::uint64_t line, const StreamOp&) { lines.push_back(line); });
  EXPECT_EQ(lines, (std::vector<std::uint64_t>{2, 3}));
}

TEST(HazardFileTest, ACleanProgramHasNoVerdicts) {
  EXPECT_TRUE(parse_hazard(kBegin + "\"verdicts\":[]}\n" + kLog, "file").verdicts.empty());
}

std::string refused(const std::string& text) {
  try {
    parse_hazard(text, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return "taken";
}

TEST(HazardFileTest, WhatIsWrongIsRefusedWithItsLine) {
  const auto of = [](const std::string& rest) { return refused(kBegin + rest + "}\n" + kLog); };
  EXPECT_EQ(refused("").substr(0, 7), "file:1:");
  EXPECT_EQ(refused("{}\n"), "file:1: expected a key \"ferry\"");
  EXPECT_EQ(refused(R"({"ferry":"plan"})"), "file:1: expected \"ferry\": \"hazard\"");
  EXPECT_EQ(refused(R"({"ferry":"hazard","schema":2})"), "file:1: expected \"schema\": 1");
  EXPECT_EQ(of(R"("verdicts":{})"), "file:1: expected \"verdicts\": a list");
  EXPECT_EQ(of(R"("verdicts":[{"kind":"reuse","earlier":2,"later":4}])"),
            "file:1: expected \"verdicts\": lines of operations, not 4");
  EXPECT_EQ(of(R"("verdicts":[{"kind":"reuse","earlier":1,"later":2}])"),
            "file:1: expected \"verdicts\": lines of operations, not 1");
  EXPECT_EQ(of(kVerdict + R"(,"schedule":"2@3")"), "file:1: expected a key \"seen\"");
  for (const char* schedule : {"", "-", "2", "2@", "@3", "2@3 ", "2@3,2@3", "2@x", "rr@3"}) {
    EXPECT_EQ(of(kVerdict + R"(,"schedule":")" + schedule + R"(","seen":"s")"),
              "file:1: expected \"schedule\": line numbers LATE@UNTIL, separated by spaces")
        << schedule;
  }
  EXPECT_EQ(of(R"("verdicts":[],"schedule":"2@3","seen":"s")"),
            "file:1: expected \"verdicts\": at least one, which the schedule shows");
  EXPECT_EQ(refused(kBegin + "\"verdicts\":[]}\n" + kLog + "{\"op\":\"jump\"}\n").substr(0, 7),
            "file:4:");
}

}  // namespace
}  // namespace ferry
