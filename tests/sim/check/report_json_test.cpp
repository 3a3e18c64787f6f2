// What other programs read of a verdict: the parts of an operation's place, JSON and SARIF.
#include "sim/check/report_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace ferry::check {
namespace {

std::string parts(const std::string& name) {
  const Place place = place_of(name);
  return place.operation + "|" + place.file + "|" + std::to_string(place.line) + "|" +
         place.function + (place.of_backward ? "|backward" : "");
}

TEST(ReportJsonTest, APlaceIsToldApartFromItsOperation) {
  EXPECT_EQ(parts("copy at /a/train.py:12 in fill"), "copy|/a/train.py|12|fill");
  EXPECT_EQ(parts("mm at the backward of t.py:7 in <module>"), "mm|t.py|7|<module>|backward");
  EXPECT_EQ(parts("relu at net.py:7"), "relu|net.py|7|");
  EXPECT_EQ(parts("at net.py:7 in f"), "|net.py|7|f");
  EXPECT_EQ(parts("copy at /look in here/a.py:3 in f"), "copy|/look in here/a.py|3|f");
}

TEST(ReportJsonTest, ANameWithoutAPlaceIsWhole) {
  for (const std::string name : {"mm", "", "look at me", "mm at a.py:x", "mm at a.py:7th"}) {
    EXPECT_EQ(parts(name), name + "||0|");
  }
}

LogReport judged(const std::string& log) {
  std::istringstream in(log);
  LineSource lines(in, "run.jsonl");
  return check_log(lines);
}

const std::string kRace =
    R"({"op":"kernel","stream":"main","reads":[],"writes":["x"],"name":"mm at /a b/net.py:4 in run"}
{"op":"kernel","stream":"side","reads":["x"],"writes":["y"],"name":"relu"}
)";

TEST(ReportJsonTest, JsonHasBothOperationsWithTheirPlaces) {
  const auto json = to_json(judged(kRace));
  const auto race = json["violations"][0];
  EXPECT_EQ(race["operation"].dump(),
            R"({"name":"relu","file":null,"line":null,"function":null,"of_backward":false})");
  EXPECT_EQ(race["previous_operation"].dump(),
            R"({"name":"mm","file":"/a b/net.py","line":4,"function":"run","of_backward":false})");
  EXPECT_EQ(race["kind"], "read after write");
}

TEST(ReportJsonTest, SarifHasAResultWithItsRuleAndBothPlaces) {
  const auto run = to_sarif(judged(kRace), "run.jsonl")["runs"][0];
  ASSERT_EQ(run["results"].size(), 1U);
  const auto result = run["results"][0];
  EXPECT_EQ(result["ruleId"], run["tool"]["driver"]["rules"][0]["id"]);
  const auto later = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(later["artifactLocation"]["uri"], "run.jsonl");
  EXPECT_EQ(later["region"]["startLine"], 2);
  const auto earlier = result["relatedLocations"][0];
  EXPECT_EQ(earlier["physicalLocation"]["artifactLocation"]["uri"], "file:///a%20b/net.py");
  EXPECT_EQ(earlier["physicalLocation"]["region"]["startLine"], 4);
  EXPECT_EQ(earlier["logicalLocations"][0]["name"], "run");
  EXPECT_NE(result["message"]["text"].get<std::string>().find("fix: record an event"),
            std::string::npos);
}

TEST(ReportJsonTest, SarifOfALogThatNobodyCanOpenNamesPlacesInTheSourceAlone) {
  const auto result = to_sarif(judged(kRace), "")["runs"][0]["results"][0];
  EXPECT_TRUE(result["locations"].empty());
  EXPECT_EQ(result["relatedLocations"].size(), 1U);
  const auto clean =
      to_sarif(judged(R"({"op":"kernel","stream":"s","reads":["x"],"writes":[]})"), "run.jsonl");
  EXPECT_EQ(clean["version"], "2.1.0");
  EXPECT_TRUE(clean["runs"][0]["results"].empty());
}

}  // namespace
}  // namespace ferry::check
