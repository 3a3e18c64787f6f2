// A mistake is reported once, with both accesses and what would order them, in logs of any length.
#include "sim/check/log_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/error.h"
#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using test::declare;
using test::found;
using test::judge;
using test::report_of;

TEST(LogCheck, ABufferInBothListsCountsAsWritten) {
  const std::string update = R"({"op":"kernel","stream":"b","reads":["x"],"writes":["x"]})";
  judge({
      {{"W a x", update}, "write after write 1→2"},
      {{"W a x", "R a x", update}, "write after read 2→3"},
  });
}

TEST(LogCheck, ZeroBytesTouchNothing) {
  const std::string empty = R"({"op":"kernel","stream":"b","reads":[],)"
                            R"("writes":[{"address":1000,"bytes":0}]})";
  EXPECT_EQ(found({"W a A", empty}), "");
}

TEST(LogCheck, OneViolationForEachBufferAndPairOfLines) {
  const std::string both =
      R"({"op":"kernel","stream":"a","reads":[],"writes":["x","y"],"name":"k"})";
  const std::string reads = R"({"op":"kernel","stream":"b","reads":["x","y"],"writes":[]})";
  EXPECT_EQ(found({both, reads}), "read after write 1→2 x2");
  // After a report the later access stands.
  EXPECT_EQ(found({"W a x", "W b x", "R b x"}), "write after write 1→2");
  EXPECT_EQ(found({"W a x", "R b x", "R b x"}), "read after write 1→2");
  // The same places again.
  EXPECT_EQ(found({"W a x", "R b x", "sync b", "W a x", "R b x"}), "read after write 1→2 x2");
}

TEST(LogCheck, OtherPlacesAreOtherViolations) {
  const auto kernel = [](const std::string& more) {
    return R"({"op":"kernel","stream":"b","reads":["x"],"writes":[])" + more + "}";
  };
  EXPECT_EQ(found({"W a x", kernel(R"(,"where":"f:1")"), "W b x", "sync b", "W a x",
                   kernel(R"(,"where":"f:2")")}),
            "read after write 1→2; read after write 5→6");
}

TEST(LogCheck, AViolationNamesBothAccessesAndWhatWouldOrderThem) {
  const LogReport race = report_of({"W a x", "", "R b x"});
  EXPECT_EQ(race.lines, 3u);
  ASSERT_EQ(race.violations.size(), 1u);
  EXPECT_EQ(race.violations[0].buffer, "x");
  EXPECT_EQ(race.violations[0].stream, "b");
  EXPECT_EQ(race.violations[0].previous_stream, "a");
  EXPECT_EQ(
      race.violations[0].message,
      "read after write of \"x\": kernel on stream \"b\" (line 3) is not ordered after kernel "
      "on stream \"a\" (line 1)");
  EXPECT_EQ(race.violations[0].fix,
            "record an event on stream \"a\" after line 1, and wait for it on stream \"b\" before "
            "line 3");
  const LogReport reuse = report_of({"alloc a X", "R b X", "free a X", "alloc a X", "W a X"});
  ASSERT_EQ(reuse.violations.size(), 1u);
  EXPECT_EQ(reuse.violations[0].fix,
            "record_use of the buffer on stream \"b\" before it is freed; or record an event on "
            "stream \"b\" after line 2, and wait for it on stream \"a\" before line 5");
  const LogReport hosts = report_of({"@t HW x", "@u HR x"});
  ASSERT_EQ(hosts.violations.size(), 1u);
  EXPECT_EQ(
      hosts.violations[0].fix,
      "release a token on host thread \"t\" after line 1, and acquire it before line 2 on host "
      "thread \"u\"");
}

// Users of PyTorch know streams' methods, and the places of their own files.
TEST(LogCheck, OfAPythonProgramTheFixHasPyTorchsCalls) {
  const auto fix = [](const std::vector<std::string>& lines) {
    const LogReport report = report_of(lines);
    return report.violations.size() == 1 ? report.violations[0].fix : "no violation";
  };
  const auto kernel = [](const std::string& stream, const std::string& where) {
    return R"({"op":"kernel","stream":")" + stream +
           R"(","reads":[{"address":0,"bytes":4}],"writes":[{"address":0,"bytes":4}],"where":")" +
           where + "\"}";
  };
  const std::string wait =
      "; in PyTorch: torch.cuda.current_stream().wait_stream(s) before net.py:7, where s is "
      "stream \"a\"";
  EXPECT_TRUE(fix({kernel("a", "net.py:3"), kernel("b", "net.py:7 in forward")}).ends_with(wait));
  EXPECT_EQ(fix({kernel("a", "net.py:3"), kernel("b", "net.cu:7")}).find("PyTorch"),
            std::string::npos);
  const std::string host =
      R"({"op":"host_read","buffer":{"address":0,"bytes":4},"where":"net.py:9"})";
  EXPECT_TRUE(
      fix({kernel("a", "net.py:3"), host})
          .ends_with("; in PyTorch: s.synchronize() before net.py:9, where s is stream \"a\""));
  const std::string memory = R"(","stream":"a","address":0,"bytes":4,"pool":"caching"})";
  const std::string reuse =
      fix({R"({"op":"alloc)" + memory, "+e a", "-e b", kernel("b", "net.py:3"),
           R"({"op":"free)" + memory, R"({"op":"alloc)" + memory, kernel("a", "net.py:7")});
  EXPECT_TRUE(
      reuse.ends_with("; in PyTorch: t.record_stream(s) before the tensor t is freed, or "
                      "torch.cuda.current_stream().wait_stream(s) before net.py:7, where s "
                      "is stream \"b\""))
      << reuse;
}

TEST(LogCheck, AMalformedLineIsNamed) {
  try {
    report_of({"W a x", "", "{\"op\":\"dance\"}"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.line(), 3u);
  }
}

// Many events, tokens, streams and names: what is dropped makes no difference.
std::string long_log(int steps, std::vector<std::string> log) {
  for (int i = 0; i < steps; ++i) {
    const std::string n = std::to_string(i);
    log.push_back(R"({"op":"kernel","stream":"a)" + n + R"(","reads":[],"writes":["x"],"name":"k)" +
                  n + "\"}");
    log.insert(log.end(), {"+e" + n + " a" + n, "-e" + n + " b", "R b x", "release m" + n, "sync b",
                           "destroy a" + n, declare("c" + n, "blocking"), "destroy c" + n});
  }
  const std::string last = std::to_string(steps - 1);
  log.insert(log.end(), {"W last x", "-e" + last + " c", "R c x", "@t HR x"});
  return found(log);
}

TEST(LogCheck, ALongLogIsJudgedLikeAShortOne) {
  EXPECT_EQ(long_log(10000, {""}), "read after write 90002→90004; read after write 90002→90005");
  // A second thread learns nothing: nothing may be dropped.
  EXPECT_EQ(long_log(600, {"@t HW y"}), "read after write 5402→5404; read after write 5402→5405");
}

}  // namespace
}  // namespace ferry::check
