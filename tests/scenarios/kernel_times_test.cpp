#include "scenarios/kernel_times.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "formats/builder.h"
#include "formats/error.h"

namespace ferry {
namespace {

// 1 byte a nanosecond, and no kernel below 10 ns.
Hardware hardware() {
  Hardware hardware;
  hardware.flops_per_us = {1000, 1000, 1000, 1000};
  hardware.memory_bytes_per_us = 1000;
  hardware.kernel_min_ns = 10;
  return hardware;
}

// An op "f" on `elements` of bf16, six bytes of traffic an element, and its time.
Program program_of(std::int64_t elements, std::int64_t ns) {
  Builder b;
  const TypeId type = b.type({elements});
  const Slot w = b.global(GlobalKind::kParameter, type);
  b.op(0, "f", {w}, type);
  std::get<Op>(b.program.codes[0].statements[0].action).measured_ns = ns;
  return b.program;
}

std::int64_t time_of(const Program& program) {
  return std::get<Op>(program.codes[0].statements[0].action).measured_ns;
}

TimesTable table_of(const std::vector<Program>& programs) {
  TimeSamples samples;
  for (const Program& program : programs) samples.add(program);
  return {.device = "a \"card\"", .about = {{"model", "f"}}, .times = samples.times()};
}

MeasuredTimes measured(std::vector<TimesTable> tables) {
  return {.tables = std::move(tables), .profiled = {}};
}

const char* const kHeader = R"({"ferry":"kernel times","schema":1,"device":"d"})";
const char* const kLine =
    R"({"op":"f","in":[{"dtype":"f32","shape":[2]},null],"out":[{"dtype":"f32","shape":[2]}],"writes":[0],)"
    R"("flops":4,"read":8,"written":8,"ns":7,"least_ns":5,"samples":3})";

std::string error(const std::string& text) {
  try {
    parse_times(text, "t.jsonl");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string changed(const std::string& piece, const std::string& instead) {
  std::string line = kLine;
  line.replace(line.find(piece), piece.size(), instead);
  return error(std::string(kHeader) + "\n" + line + "\n");
}

TEST(KernelTimesTest, ATableIsReadAsItWasWritten) {
  const std::string text = std::string(kHeader) + "\n" + kLine + "\n";
  const TimesTable table = parse_times(text, "t.jsonl");
  EXPECT_EQ(to_text(table), text);
  ASSERT_EQ(table.times.size(), 1u);
  const KernelTime& time = table.times.begin()->second;
  EXPECT_EQ(time.op.name, "f");
  EXPECT_EQ(time.op.in.at(1), std::nullopt);
  EXPECT_EQ(time.op.flops, 4);
  EXPECT_EQ(time.ns, 7);
  EXPECT_EQ(time.least_ns, 5);
  EXPECT_EQ(time.samples, 3);
  const TimesTable other = table_of({program_of(8, 100)});
  EXPECT_EQ(to_text(parse_times(to_text(other), "t")), to_text(other));
}

TEST(KernelTimesTest, BadInputIsRefusedWithItsLine) {
  EXPECT_EQ(error(""), "t.jsonl:1: expected the header of a table of kernel times");
  EXPECT_EQ(error("{\"ferry\":\"plan\"}"), "t.jsonl:1: expected \"ferry\": \"kernel times\"");
  EXPECT_EQ(error("not json").rfind("t.jsonl:1: ", 0), 0u);
  const std::string twice = std::string(kLine) + "\n";
  EXPECT_EQ(error(std::string(kHeader) + "\n" + twice + twice),
            "t.jsonl:3: expected each signature once, but a line above has this one");
  EXPECT_EQ(changed("\"op\":\"f\",", "").rfind("t.jsonl:2: ", 0), 0u);
  EXPECT_EQ(changed("\"ns\":7", "\"ns\":0").rfind("t.jsonl:2: ", 0), 0u);
  EXPECT_EQ(changed("\"least_ns\":5", "\"least_ns\":8").rfind("t.jsonl:2: ", 0), 0u);
  EXPECT_EQ(changed("\"out\":[{", "\"out\":[null,{").rfind("t.jsonl:2: ", 0), 0u);
  EXPECT_EQ(changed("[2]},null", "[-2]},null").rfind("t.jsonl:2: ", 0), 0u);
}

// What nobody asks for is skipped; each key that is asked for is refused by its name.
TEST(KernelTimesTest, KeysAreAskedForByName) {
  const std::string header = R"({"ferry":"kernel times","schema":1,"device":"x","about":{}})";
  const std::string line =
      R"({"op":"f","in":[{"dtype":"f32","shape":[2],"strides":[2],"offset":1},null],)"
      R"("out":[{"dtype":"f32","shape":[2]}],"writes":[0],"flops":1,"read":2,"written":3,"ns":7,)"
      R"("least_ns":5,"samples":3})";
  const std::string text = header + "\n" + line + "\n";
  ASSERT_EQ(error(text), "");
  const std::string unused = R"("odd":[1e400,NaN,{"ns":-1}],)";
  std::string more = text;
  for (std::size_t at = more.size(); (at = more.rfind('{', at - 1)) != more.npos && at > 0;) {
    if (more[at + 1] != '}') more.insert(at + 1, unused);
  }
  EXPECT_EQ(to_text(parse_times(more, "t")), to_text(parse_times(text, "t"))) << more;
  for (std::size_t at = text.find("\":"); at != text.npos; at = text.find("\":", at + 1)) {
    const std::size_t begin = text.rfind('"', at - 1);
    const std::string key = text.substr(begin, at + 1 - begin);
    std::string wrong = text;
    wrong.insert(at + 2, "1e400,\"odd\":");
    EXPECT_NE(error(wrong).find("expected " + key + ": "), std::string::npos) << error(wrong);
  }
}

TEST(KernelTimesTest, TheMedianOfTheSamplesIsKept) {
  const TimesTable table =
      table_of({program_of(8, 30), program_of(8, 10), program_of(8, 20), program_of(8, 0)});
  ASSERT_EQ(table.times.size(), 1u);
  const KernelTime& time = table.times.begin()->second;
  EXPECT_EQ(time.ns, 20);
  EXPECT_EQ(time.least_ns, 10);
  EXPECT_EQ(time.samples, 3);  // what was not measured is none
}

TEST(KernelTimesTest, ATableWinsOverTheProgramsOwnTimes) {
  Program program = program_of(8, 999);
  const TimesUsed used = use_times(measured({table_of({program_of(8, 30)})}), hardware(), program);
  EXPECT_EQ(time_of(program), 30);
  EXPECT_EQ(used.measured, 1);
  EXPECT_EQ(used.scaled, 0);
  EXPECT_EQ(used.all, 1);
}

TEST(KernelTimesTest, TheFirstTableThatHasItCounts) {
  Program program = program_of(8, 0);
  use_times(measured({table_of({program_of(16, 50)}), table_of({program_of(8, 30)}),
                      table_of({program_of(8, 40)})}),
            hardware(), program);
  EXPECT_EQ(time_of(program), 30);
}

TEST(KernelTimesTest, AnotherSizeIsScaledFromTheNearest) {
  const std::vector<TimesTable> tables = {
      table_of({program_of(100, 5'000), program_of(1000, 9'000)})};
  Program larger = program_of(2000, 0);
  const TimesUsed used = use_times(measured(tables), hardware(), larger);
  EXPECT_EQ(used.measured, 0);
  EXPECT_EQ(used.scaled, 1);
  EXPECT_EQ(time_of(larger), 18'000);
  Program smaller = program_of(50, 0);
  use_times(measured(tables), hardware(), smaller);
  EXPECT_EQ(time_of(smaller), 2'500);
}

TEST(KernelTimesTest, WhatIsNotThereIsLeftAsItIs) {
  Program other = program_of(8, 77);
  std::get<Op>(other.codes[0].statements[0].action).name = "g";
  const TimesUsed used = use_times(measured({table_of({program_of(8, 30)})}), hardware(), other);
  EXPECT_EQ(used.measured + used.scaled, 0);
  EXPECT_EQ(time_of(other), 77);
  Program none = program_of(8, 77);
  use_times({}, hardware(), none);
  EXPECT_EQ(time_of(none), 77);
}

}  // namespace
}  // namespace ferry
