#include "sim/peak/log_peak.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "formats/error.h"
#include "sim/peak/owners_text.h"

namespace ferry::peak {
namespace {

LogPeak peak(const std::string& log) {
  std::istringstream in(log);
  LineSource lines(in, "run.jsonl");
  return peak_of_log(lines);
}

std::string alloc(int address, int bytes, const std::string& more = "",
                  const std::string& pool = "caching") {
  return R"({"op":"alloc","address":)" + std::to_string(address) + R"(,"bytes":)" +
         std::to_string(bytes) + R"(,"stream":"s","pool":")" + pool + "\"" + more + "}\n";
}
std::string free(int address, int bytes, const std::string& pool = "caching") {
  return R"({"op":"free","address":)" + std::to_string(address) + R"(,"bytes":)" +
         std::to_string(bytes) + R"(,"stream":"s","pool":")" + pool + "\"}\n";
}
std::string kernel(const std::string& name, int read, int written) {
  return R"({"op":"kernel","stream":"s","reads":[{"address":)" + std::to_string(read) +
         R"(,"bytes":8}],"writes":[{"address":)" + std::to_string(written) +
         R"(,"bytes":8}],"name":")" + name + "\"}\n";
}

TEST(LogPeak, ABlockBelongsToTheFirstOperationThatWritesToIt) {
  const LogPeak found = peak(alloc(1000, 512, R"(,"name":"at old.py:1 in f")") +
                             kernel("aten::mm at new.py:2 in g", 1000, 1000) +
                             kernel("aten::add_ at new.py:3 in g", 1000, 1000));
  ASSERT_EQ(found.owners.size(), 1u);
  EXPECT_EQ(found.owners[0].what, "aten::mm");
  EXPECT_EQ(found.owners[0].place, "new.py:2 in g");
  EXPECT_EQ(found.bytes, 512);
  EXPECT_EQ(found.operation, 1u);
  EXPECT_EQ(found.operations, 3u);
}

TEST(LogPeak, ABlockThatNothingWritesBelongsToItsAllocation) {
  const LogPeak found = peak(alloc(1000, 512, R"(,"name":"at a.py:1 in f")"));
  ASSERT_EQ(found.owners.size(), 1u);
  EXPECT_EQ(found.owners[0].what, "");
  EXPECT_EQ(found.owners[0].place, "a.py:1 in f");
}

// The first 300 bytes are gone when the peak comes, and the block of the peak is gone at the end.
TEST(LogPeak, ThePeakHasTheBlocksOfItsMoment) {
  const LogPeak found = peak(alloc(1000, 300) + kernel("early", 1000, 1000) + free(1000, 300) +
                             alloc(2000, 200) + kernel("kept", 2000, 2000) + alloc(3000, 400) +
                             kernel("gone", 2000, 3000) + free(3000, 400) + alloc(4000, 100));
  EXPECT_EQ(found.bytes, 600);
  EXPECT_EQ(found.operation, 6u);
  ASSERT_EQ(found.owners.size(), 2u);
  EXPECT_EQ(found.owners[0].what, "gone");
  EXPECT_EQ(found.owners[0].bytes, 400);
  EXPECT_EQ(found.owners[1].what, "kept");
  EXPECT_EQ(found.owners[1].done_bytes, 0) << "it is read after the peak";
}

TEST(LogPeak, BytesThatNothingUsesAfterThePeakAreCounted) {
  const LogPeak found = peak(alloc(1000, 300) + kernel("dead", 1000, 1000) + alloc(2000, 100) +
                             kernel("used", 2000, 2000) + free(1000, 300));
  ASSERT_EQ(found.owners.size(), 2u);
  EXPECT_EQ(found.owners[0].done_bytes, 300);
  EXPECT_EQ(found.owners[1].done_bytes, 0);
  // The log does not show who uses a workspace.
  EXPECT_EQ(peak(alloc(1000, 300)).owners.at(0).done_bytes, 0);
}

TEST(LogPeak, BlocksInsideAnotherPoolsMemoryCountOnce) {
  const LogPeak inside = peak(alloc(1000, 4096, "", "malloc") + alloc(1000, 512));
  EXPECT_EQ(inside.bytes, 512);
  EXPECT_EQ(peak(alloc(1000, 4096, "", "malloc")).bytes, 4096);
  EXPECT_EQ(peak(alloc(1000, 4096, "", "host")).devices, 0u);
}

TEST(LogPeak, TheFullestDeviceIsTaken) {
  const std::string second = R"({"op":"stream","id":"s","kind":"legacy","device":1})"
                             "\n";
  const LogPeak found = peak(alloc(1000, 300) + second + alloc(5000, 400));
  EXPECT_EQ(found.devices, 2u);
  EXPECT_EQ(found.device, 1u);
  EXPECT_EQ(found.bytes, 400);
}

TEST(LogPeak, AMalformedLineIsNamed) { EXPECT_THROW(peak("{\"op\":\"alloc\"}\n"), InputError); }

TEST(LogPeak, TheTableNamesOperatorAndPlace) {
  const std::string text =
      owners_text(peak(alloc(1000, 512) + kernel("aten::mm at a.py:2 in g", 1000, 1000) +
                       alloc(2000, 256, R"(,"name":"at a.py:3 in g")")),
                  8);
  EXPECT_NE(text.find("66.7 %  #############               1  aten::mm at a.py:2 in g\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  workspace, or never written, at a.py:3 in g\n"), std::string::npos)
      << text;
}

TEST(LogPeak, TheLinesOfAFunctionAreAddedUpWithTheirBackward) {
  const std::string file = "/env/lib/site-packages/nets/net.py";
  const std::string text = functions_text(
      peak(alloc(1000, 512) + kernel("mm at " + file + ":2 in Net.forward", 1000, 1000) +
           alloc(2000, 128) + kernel("add at " + file + ":3 in Net.forward", 2000, 2000) +
           alloc(3000, 128) +
           kernel("mm at the backward of " + file + ":2 in Net.forward", 3000, 3000) +
           alloc(4000, 256) + kernel("copy at /home/me/run/train.py:7 in main", 4000, 4000)),
      8);
  EXPECT_NE(text.find("75.0 %  ###############             3  nets/net.py in Net.forward\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  run/train.py in main\n"), std::string::npos) << text;
  EXPECT_EQ(functions_text(peak(alloc(1000, 512) + kernel("mm", 1000, 1000)), 8), "");
}

}  // namespace
}  // namespace ferry::peak
