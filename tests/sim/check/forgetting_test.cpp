// What a long log may make the checkers forget, and what never.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using test::declare;
using test::line_of;

LogReport judge(const std::vector<std::string>& log, const LogOptions& options = {}) {
  std::string text;
  for (const std::string& each : log) text += line_of(each) + "\n";
  std::istringstream in(text);
  LineSource lines(in, "log");
  return check_log(lines, options);
}

// Work on stream "main", for which the host waits, with a new buffer on each line.
void append_work(std::vector<std::string>& log, int lines) {
  for (int i = 0; i < lines; ++i) {
    log.push_back("W main v" + std::to_string(i));
    if (i % 100 == 0) log.push_back("sync main");
  }
}

// The reader is forgotten at no free: who uses the bytes again, however much later, is found.
TEST(ForgettingTest, AReuseFarAwayIsFound) {
  for (const bool waits : {false, true}) {
    std::vector<std::string> log = {"alloc main X", "R side X", "free main X"};
    if (waits) log.emplace_back("sync side");
    append_work(log, 20'000);
    log.insert(log.end(), {"alloc main X", "W main X"});
    const LogReport report = judge(log);
    ASSERT_EQ(report.violations.size(), waits ? 0u : 1u);
    if (waits) continue;
    EXPECT_EQ(report.violations[0].kind, HazardKind::kReuse);
    EXPECT_EQ(report.violations[0].previous_line, 2u);
    EXPECT_EQ(report.violations[0].line, log.size());
  }
}

TEST(ForgettingTest, WhatEveryThreadHasWaitedForIsForgotten) {
  std::vector<std::string> log;
  append_work(log, 20'000);
  log.emplace_back("sync main");
  const LogReport report = judge(log);
  EXPECT_EQ(report.remembered, 0u);
  EXPECT_TRUE(report.pins.empty());
  EXPECT_EQ(report.scope.buffers.count, 20'000u);
  EXPECT_TRUE(report.scope.buffers.exact);
}

// One thread that was seen once, long ago, may still look at everything.
TEST(ForgettingTest, AThreadThatNeverWaitsIsNamedWithWhatItCosts) {
  std::vector<std::string> log = {"@idle HR z", "sync main"};
  append_work(log, 20'000);
  log.emplace_back("sync main");
  const LogReport report = judge(log);
  EXPECT_TRUE(report.violations.empty());
  EXPECT_EQ(report.remembered, 20'001u);  // with its own
  ASSERT_EQ(report.pins.size(), 2u);
  EXPECT_EQ(report.pins[0].thread, "idle");
  EXPECT_EQ(report.pins[0].accesses, 20'000u);
  EXPECT_EQ(report.pins[0].stream, "main");
  EXPECT_EQ(report.pins[0].on_stream, 20'000u);
  EXPECT_EQ(report.pins[1].thread, "");
  EXPECT_EQ(report.pins[1].accesses, 1u);
  // And it does look.
  log.emplace_back("@idle HR v17");
  const LogReport looks = judge(log);
  ASSERT_EQ(looks.violations.size(), 1u);
  EXPECT_EQ(looks.violations[0].buffer, "v17");
}

// A report keeps the name that its stream had, whoever has its place by now.
TEST(ForgettingTest, ReportsOutliveTheNamesOfTheirStreams) {
  std::vector<std::string> log;
  const auto step = [&log](int i) {
    const std::string stream = "s" + std::to_string(i);
    log.push_back(declare(stream, "nonblocking"));
    log.push_back("W " + stream + " x" + std::to_string(i));
    if (i % 1000 == 500) log.push_back("R side x" + std::to_string(i));
    log.push_back("sync " + stream);
    log.push_back("sync side");
    log.push_back("destroy " + stream);
  };
  for (int i = 0; i < 3000; ++i) step(i);
  const LogReport report = judge(log, {.many = 500});
  ASSERT_EQ(report.violations.size(), 3u);  // one each: they are different streams
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string number = std::to_string(i * 1000 + 500);
    EXPECT_EQ(report.violations[i].previous_stream, "s" + number);
    EXPECT_EQ(report.violations[i].buffer, "x" + number);
    EXPECT_EQ(report.violations[i].count, 1u);
  }
  EXPECT_EQ(report.scope.streams.count, 3001u);
}

// A token that was forgotten looked like one that nobody had released: a deadlock, in a long log.
TEST(ForgettingTest, ATokenThatWasReleasedStaysReleased) {
  for (const std::size_t many : {std::size_t{0}, std::size_t{4096}}) {
    EXPECT_TRUE(judge({"release t", "W a x", "acquire t b"}, {.many = many}).violations.empty());
    EXPECT_EQ(judge({"release t", "W a x", "acquire u b"}, {.many = many}).violations.size(), 1u);
  }
}

// Of several buffers that two lines race on, the one that is named first is told.
TEST(ForgettingTest, WhichBufferIsToldDoesNotDependOnWhatWasForgotten) {
  const std::string both =
      R"({"op":"kernel","stream":"a","reads":[],"writes":["y","x"],"name":"k"})";
  const std::string reads = R"({"op":"kernel","stream":"b","reads":["x","y"],"writes":[]})";
  for (const std::size_t many : {std::size_t{0}, std::size_t{4096}}) {
    const LogReport report =
        judge({"W a x", "sync a", "W a z", "sync a", both, reads}, {.many = many});
    ASSERT_EQ(report.violations.size(), 1u);
    EXPECT_EQ(report.violations[0].buffer, "x");
    EXPECT_EQ(report.violations[0].count, 2u);
  }
}

TEST(ForgettingTest, MistakesBeyondTenThousandAreCounted) {
  std::vector<std::string> log;
  for (int i = 0; i < 10'050; ++i) {
    const std::string number = std::to_string(i);
    log.push_back("W a x" + number);
    log.push_back(R"({"op":"kernel","stream":"b","reads":["x)" + number +
                  R"("],"writes":[],"name":"r)" + number + "\"}");
  }
  const LogReport report = judge(log);
  EXPECT_EQ(report.violations.size(), 10'000u);
  EXPECT_EQ(report.left_out, 50u);
}

TEST(ForgettingTest, ScopeSaysWhatWasJudged) {
  const LogReport report = judge({"", "W a x", "@t HR y", "sync a", "R a x", "R b A"});
  EXPECT_EQ(report.scope.operations, 5u);
  EXPECT_EQ(report.scope.accesses, 4u);
  EXPECT_EQ(report.scope.streams.count, 2u);
  EXPECT_EQ(report.scope.threads.count, 2u);
  EXPECT_EQ(report.scope.buffers.count, 3u);
  EXPECT_EQ(judge({}).scope.accesses, 0u);
}

}  // namespace
}  // namespace ferry::check
