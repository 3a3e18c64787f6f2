// Every hazard that ships: the checkers say what its header says, the schedule shows it, and with
// the edge that was missing neither is so any more.
#include "sim/explore/log_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "formats/text_file.h"
#include "sim/check/log_check.h"
#include "sim/explore/explorer.h"

namespace ferry::explore {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& each :
       fs::directory_iterator(fs::path(FERRY_SOURCE_DIR) / "scenarios/hazards")) {
    found.push_back(each.path().stem().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

class Hazards : public testing::TestWithParam<std::string> {
 protected:
  const fs::path path_ = fs::path(FERRY_SOURCE_DIR) / "scenarios/hazards" / (GetParam() + ".jsonl");
  const HazardFile hazard_ = read_hazard(path_);
};

TEST_P(Hazards, AreWhatTheCheckersSay) {
  HazardFile judged = hazard_;
  const LogVerdict found = judge_log(hazard_);
  judged.verdicts = found.verdicts;
  judged.schedule = found.schedule;
  judged.seen = found.seen;
  const std::string header = to_text(judged);
  ASSERT_FALSE(hazard_.verdicts.empty()) << "its header should be\n"
                                         << header.substr(0, header.find('\n'));
  EXPECT_EQ(hazard_.verdicts, judged.verdicts) << header.substr(0, header.find('\n'));
  EXPECT_EQ(seen_in(hazard_), hazard_.seen);
  EXPECT_FALSE(hazard_.seen.empty());
}

TEST_P(Hazards, AreWrittenAsTheyAreRead) { EXPECT_EQ(to_text(hazard_), read_file(path_)); }

std::string json(const std::string& op, const std::string& stream) {
  return R"({"op":")" + op + R"(","event":"mended","stream":")" + stream + "\"}\n";
}

// The log with an event after the earlier access, for which the later one waits.
std::string mended(const HazardFile& hazard) {
  std::istringstream in("\n" + hazard.log);
  LineSource lines(in, "log");
  const check::LogViolation first = check::check_log(lines).violations.front();
  const std::string wait = first.by_host ? R"({"op":"event_sync","event":"mended"})"
                                           "\n"
                                         : json("wait", first.stream);
  std::istringstream again(hazard.log);
  std::string text, line;
  for (std::uint64_t number = 2; std::getline(again, line); ++number) {
    if (number == first.line) text += wait;
    text += line + "\n";
    if (number == first.previous_line) text += json("record", first.previous_stream);
  }
  return text;
}

TEST_P(Hazards, AreNoMoreOnceTheEdgeIsThere) {
  HazardFile mended_one = hazard_;
  mended_one.log = mended(hazard_);
  HazardVerdict moved = hazard_.verdicts.at(0);
  moved.later += 2;
  const auto verdicts = judge_log(mended_one).verdicts;
  EXPECT_EQ(std::count(verdicts.begin(), verdicts.end(), moved), 0);
  // (A schedule of one delay, as all of these are.)
  mended_one.schedule = std::to_string(moved.earlier) + "@" + std::to_string(moved.later);
  EXPECT_THROW(seen_in(mended_one), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Shipped, Hazards, testing::ValuesIn(names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

constexpr const char* kRace = R"({"op":"kernel","stream":"a","reads":[],"writes":["x"],"name":"f"}
{"op":"kernel","stream":"b","reads":["x"],"writes":[],"name":"g"}
)";

TEST(LogVerdict, OfARace) {
  HazardFile hazard;
  hazard.log = kRace;
  const LogVerdict found = judge_log(hazard);
  EXPECT_EQ(found.verdicts, (std::vector<HazardVerdict>{{"read after write", 2, 3}}));
  EXPECT_EQ(found.schedule, "2@3");
  hazard.schedule = found.schedule;
  EXPECT_EQ(seen_in(hazard), found.seen);
  hazard.schedule = "-";
  EXPECT_EQ(seen_in(hazard), "");
}

TEST(LogVerdict, OfACleanLog) {
  HazardFile hazard;
  hazard.log = R"({"op":"kernel","stream":"a","reads":[],"writes":["x"],"name":"f"})"
               "\n";
  const LogVerdict found = judge_log(hazard);
  EXPECT_TRUE(found.verdicts.empty());
  EXPECT_EQ(found.schedule + found.seen, "");
}

TEST(LogVerdict, AScheduleOfOtherLinesIsRefused) {
  HazardFile hazard;
  hazard.log = kRace;
  for (const char* schedule : {"2@4", "9@3", "x", "2", "2@", "@3", "2@3 "}) {
    hazard.schedule = schedule;
    EXPECT_THROW(seen_in(hazard), std::invalid_argument) << schedule;
  }
}

}  // namespace
}  // namespace ferry::explore
