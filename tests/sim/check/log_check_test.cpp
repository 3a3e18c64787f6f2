// Small logs with their verdict test each rule of order in formats/STREAM_LOG.md: one log has the
// order, and one lacks it.
#include "sim/check/log_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/check/log_lines.h"

namespace ferry::check {
namespace {

using test::declare;
using test::found;
using test::judge;
using test::kLegacy;
using test::report_of;
using test::transfer;

TEST(LogCheck, StreamsAndEvents) {
  judge({
      {{"W a x", "R a x"}, ""},
      {{"W a x", "R b x"}, "read after write 1→2"},
      {{"R a x", "W b x"}, "write after read 1→2"},
      {{"W a x", "W b x"}, "write after write 1→2"},
      {{"R a x", "R b x"}, ""},
      {{"W a x", "R a x", "W b x"}, "write after read 2→3"},
      {{"R a x", "R b x", "W c x"}, "write after read 1→3; write after read 2→3"},
      {{"W a x", "+e a", "-e b", "R b x"}, ""},
      {{"+e a", "W a x", "-e b", "R b x"}, "read after write 2→4"},
      {{"W a x", "-e b", "+e a", "R b x"}, "read after write 1→4"},
      {{"W a x", "+e a", "+e b", "-e b", "R b x"}, "read after write 1→5"},
      {{"W a x", "+e a", "-e b", "+e c", "R b x"}, ""},
      {{"W a x", "+e a", "-e b", "+f b", "-f c", "R c x"}, ""},
      {{"W a x", "W b y"}, ""},
  });
}

TEST(LogCheck, ADestroyedEventOrdersNothing) {
  const std::string destroy = R"({"op":"event_destroy","event":"e"})";
  judge({
      {{"W a x", "+e a", destroy, "-e b", "R b x"}, "read after write 1→5"},
      {{"W a x", "+e a", "-e b", destroy, "R b x"}, ""},
      {{"W a x", "+e a", destroy, "+e a", "-e b", "R b x"}, ""},
      {{destroy, "+e a"}, ""},
  });
}

TEST(LogCheck, TheHostWaits) {
  const std::string event_sync = R"({"op":"event_sync","event":"e"})";
  judge({
      {{"W a x", "HR x"}, "read after write 1→2"},
      {{"W a x", "sync a", "HR x"}, ""},
      {{"W a x", "sync b", "HR x"}, "read after write 1→3"},
      {{"W a x", "+e a", event_sync, "HR x"}, ""},
      {{"W a x", "+e a", "W a x", event_sync, "HR x"}, "read after write 3→5"},
      {{"W a x", event_sync, "HR x"}, "read after write 1→3"},
      {{"W a x", "sync a", "R b x"}, ""},
      {{"W a x", "R b x", "sync a"}, "read after write 1→2"},
      {{"HW x", "R a x"}, ""},
      {{"W a x", "device_sync", "HR x"}, ""},
      {{"W a x", "device_sync 1", "HR x"}, "read after write 1→3"},
      {{declare("a", "nonblocking", 1), "W a x", "device_sync 1", "HR x"}, ""},
      {{declare("a", "nonblocking", 1), "W a x", "device_sync", "HR x"}, "read after write 2→4"},
  });
}

TEST(LogCheck, ASuccessfulQueryIsASynchronisation) {
  const auto query = [](const std::string& what, const std::string& result) {
    const std::string id = what == "event" ? "e" : "a";
    return "{\"op\":\"" + what + "_query\",\"" + what + "\":\"" + id + "\",\"result\":\"" + result +
           "\"}";
  };
  judge({
      {{"W a x", "+e a", query("event", "done"), "R b x"}, ""},
      {{"W a x", "+e a", query("event", "not_ready"), "R b x"}, "read after write 1→4"},
      {{"W a x", query("stream", "done"), "HR x"}, ""},
      {{"W a x", query("stream", "not_ready"), "HR x"}, "read after write 1→3"},
  });
}

TEST(LogCheck, TheLegacyDefaultStream) {
  const std::string a = declare("a", "blocking"), b = declare("b", "blocking");
  judge({
      {{kLegacy, a, "W a x", "R 0 x"}, ""},
      {{kLegacy, a, "W 0 x", "R a x"}, ""},
      {{kLegacy, a, b, "W a x", "W 0 y", "R b x"}, ""},
      {{kLegacy, a, b, "W a x", "R b x"}, "read after write 4→5"},
      {{kLegacy, "W a x", "R 0 x"}, "read after write 2→3"},
      {{kLegacy, "W 0 x", "R a x"}, "read after write 2→3"},
      {{declare("a", "blocking"), "W a x", "R 0 x"}, "read after write 2→3"},
      // Another device's legacy stream.
      {{kLegacy, declare("a", "blocking", 1), "W a x", "R 0 x"}, "read after write 3→4"},
      {{declare("0", "legacy", 1), declare("a", "blocking", 1), "W a x", "R 0 x"}, ""},
      // A record and a wait are operations, too.
      {{kLegacy, a, "W a x", "+e 0", "-e c", "R c x"}, ""},
      {{kLegacy, a, "W c x", "+e c", "-e 0", "R a x"}, ""},
      {{kLegacy, a, "W a x", "sync 0", "HR x"}, ""},
      {{kLegacy, a, b, "W a x", "W 0 y", "W a z", "R b z"}, "read after write 6→7"},
      // What a stream did before it was declared counts.
      {{kLegacy, "W a x", a, "R 0 x"}, ""},
  });
}

TEST(LogCheck, SynchronousCopies) {
  const std::string sync = ",\"api\":\"sync\"", blocked = ",\"blocked\":true";
  judge({
      // To the host: done when it returns.
      {{transfer("device x", "pinned h"), "HR h"}, "read after write 1→2"},
      {{transfer("device x", "pinned h", sync), "HR h"}, ""},
      {{transfer("device x", "pageable h", sync), "HR h"}, ""},
      {{transfer("device x", "pageable h"), "HR h"}, "read after write 1→2"},
      {{transfer("device x", "pageable h", blocked), "HR h"}, ""},
      {{transfer("device x", "pageable h", ",\"blocked\":false"), "HR h"}, "read after write 1→2"},
      {{transfer("pageable g", "pageable h", sync), "HR h"}, ""},
      // From page-locked memory: done as well.
      {{transfer("pinned h", "device x"), "HW h"}, "rewrite under a copy 1→2"},
      {{transfer("pinned h", "device x", sync), "HW h", "R b x"}, ""},
      // From pageable memory: only staged, but what came before on the stream is done.
      {{transfer("pageable h", "device x"), "HW h"}, "rewrite under a copy 1→2"},
      {{transfer("pageable h", "device x", sync), "HW h"}, ""},
      {{transfer("pageable h", "device x", blocked), "HW h"}, ""},
      {{transfer("pageable h", "device x", sync), "R b x"}, "read after write 1→2"},
      {{"W s y", transfer("pageable h", "device x", sync), "HR y"}, ""},
      {{"W b h", transfer("pageable h", "device x", sync)}, "read after write 1→2"},
      // Within the device: the host does not wait.
      {{transfer("device x", "device y", sync), "HR y"}, "read after write 1→2"},
  });
}

TEST(LogCheck, Memsets) {
  const auto set = [](const std::string& more) {
    return R"({"op":"memset","stream":"s","dst":"x")" + more + "}";
  };
  judge({
      {{set(""), "R s x"}, ""},
      {{set(""), "R b x"}, "read after write 1→2"},
      {{set(R"(,"api":"sync")"), "HR x"}, "read after write 1→2"},
      {{set(R"(,"api":"sync","dst_kind":"pinned")"), "HR x"}, ""},
      {{set(R"(,"blocked":true)"), "HR x"}, ""},
  });
}

TEST(LogCheck, HostFunctionsRunInTheirStreamsOrder) {
  const std::string func = R"({"op":"host_func","stream":"a","reads":["x"],"writes":["y"]})";
  judge({
      {{"W a x", func, "R a y"}, ""},
      {{"W b x", func}, "read after write 1→2"},
      {{func, "HR y"}, "read after write 1→2"},
      {{R"({"op":"host_func","stream":"a"})"}, ""},
  });
}

TEST(LogCheck, TokensOfHostFunctionsOrder) {
  judge({
      {{"W a x", "release t a", "acquire t b", "R b x"}, "deadlock 2→3"},
      {{"W a x", "release t a", "+e a", "-e b", "acquire t b", "R b x"}, ""},
      {{"W a x", "release t a", "acquire t", "R b x"}, ""},
      {{"HW x", "@w release t", "acquire t b", "R b x"}, ""},
  });
}

// Host functions run one at a time, so who waits holds the others up.
TEST(LogCheck, HostFunctionsThatWaitForGood) {
  const std::string function = R"({"op":"host_func","stream":"b"})";
  judge({
      {{"acquire t a", "release t"}, ""},
      {{"acquire t a"}, "deadlock 0→1"},
      {{"acquire t a", "sync a", "release t"}, "deadlock 1→3"},
      {{"acquire t a", "sync b", "release t"}, ""},
      {{function, "acquire t a", "sync b", "release t"}, "deadlock 2→4"},
      {{function, "+e b", "-e a", "acquire t a", "sync b", "release t"}, ""},
      {{"acquire t a", "release t b"}, "deadlock 1→2"},
      {{"release t b", "sync b", "acquire t a"}, ""},
      {{"acquire t a", "@w sync a", "@w release u", "acquire u", "release t"}, "deadlock 1→5"},
      {{"acquire t a", "@w sync a", "release t"}, ""},
      {{declare("a", "nonblocking"), R"({"op":"stream_destroy","stream":"a"})", "acquire t a",
        "release t"},
       "use of a destroyed stream 2→3"},
  });
  const LogViolation v = report_of({"acquire t a", "sync a", "release t"}).violations.at(0);
  EXPECT_EQ(v.message,
            "deadlock: acquire on stream \"a\" (line 1) waits for a token that release on the host "
            "(line 3) releases only after a host function that may be behind this one");
  EXPECT_EQ(v.fix, "release the token before waiting for any host function");
}

// A log with so many streams that the places of destroyed ones are used again.
TEST(LogCheck, AStreamInTheRoomOfADestroyedOneIsAnother) {
  for (const int others : {10, 70}) {
    std::vector<std::string> begin = {declare("main", "nonblocking"),
                                      declare("old", "nonblocking")};
    for (int i = 0; i < others; ++i)
      begin.push_back(declare("s" + std::to_string(i), "nonblocking"));
    const auto with = [&](const std::vector<std::string>& more) {
      std::vector<std::string> log = begin;
      log.insert(log.end(), more.begin(), more.end());
      return log;
    };
    const std::string n = declare("new", "nonblocking");
    EXPECT_EQ(found(with({"alloc old X", "W old X", "device_sync", "destroy old", n, "R new X",
                          "use new X", "free old X", "alloc main X", "W main X"})),
              "")
        << others;
    const auto missed =
        report_of(with({"alloc main X", "R old X", "use old X", "device_sync", "destroy old", n,
                        "R new X", "free main X", "alloc main X", "W main X"}));
    ASSERT_EQ(missed.violations.size(), 1u) << others;
    EXPECT_EQ(missed.violations[0].kind, HazardKind::kReuse);
  }
}

TEST(LogCheck, HostThreads) {
  judge({
      {{"@t HW x", "@u HR x"}, "read after write 1→2"},
      {{"@t HW x", "@t release m", "@u acquire m", "@u HR x"}, ""},
      {{"@t HW x", "@u acquire m", "@t release m", "@u HR x"}, "read after write 1→4"},
      {{"@t release m", "@t HW x", "@u acquire m", "@u HR x"}, "read after write 2→4"},
      {{"@t HW x", "@t release m", "@v release m", "@u acquire m", "@u HR x"},
       "read after write 1→5"},
      {{"@t HW x", "@u W a x"}, "write after write 1→2"},
      {{"@t HW x", "@t release m", "@u acquire m", "@u W a x"}, ""},
      // What one thread waited for, the other does not know.
      {{"@t W a x", "@t sync a", "@u R b x"}, "read after write 1→3"},
      {{"@t W a x", "@t sync a", "@t release m", "@u acquire m", "@u R b x"}, ""},
      // A token orders the hosts, not what they gave their streams.
      {{"@t W a x", "@t release m", "@u acquire m", "@u R b x"}, "read after write 1→4"},
      // A stream orders its work, whoever gave it.
      {{"@t W a x", "@u R a x"}, ""},
      {{"HW x", "@u HR x"}, "read after write 1→2"},
      {{"HW x", "HR x"}, ""},
  });
}

TEST(LogCheck, AStreamDeclaredAfterADeviceSynchronisationStartsSynchronised) {
  judge({
      {{"@t W a x", "@t device_sync", declare("b", "nonblocking"), "@u R b x"}, ""},
      {{"@t W a x", declare("b", "nonblocking"), "@t device_sync", "@u R b x"},
       "read after write 1→4"},
  });
}

}  // namespace
}  // namespace ferry::check
