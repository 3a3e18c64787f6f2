// Each rule of formats/TRACE.md as small logs with their verdict: where there is a rule that
// orders, one log that has the order and one that lacks it.
#include "sim/check/trace_check.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "formats/error.h"

namespace ferry::check {
namespace {

// The logs of the tables are short: W(x) on s is `W s x`. One op a line:
//   R s x | W s x      a kernel on stream s reads, writes buffer x
//   HR x | HW x        the host does
//   +e s | -e s        record e on s | s waits for e
//   release t | acquire t [s]   the host's, or a host function's on s
//   anything that begins with { is a line as it stands
// `@t` in front: on host thread t. Buffers in capital letters are 16 bytes at their letter × 1000.
std::string buffer(const std::string& name) {
  if (name[0] < 'A' || name[0] > 'Z') return '"' + name + '"';
  return "{\"address\":" + std::to_string((name[0] - 'A' + 1) * 1000) + ",\"bytes\":16}";
}

std::string line_of(const std::string& text) {
  if (text.empty() || text[0] == '{') return text;
  std::istringstream in(text);
  std::string thread, what, on, with;
  in >> what;
  if (what[0] == '@') {
    thread = ",\"thread\":\"" + what.substr(1) + "\"";
    in >> what;
  }
  in >> on >> with;
  const std::string stream = "\"stream\":\"" + on + "\"";
  const auto op = [&](const std::string& name, const std::string& rest) {
    return "{\"op\":\"" + name + "\"," + rest + thread + "}";
  };
  if (what == "R") return op("kernel", stream + ",\"reads\":[" + buffer(with) + "],\"writes\":[]");
  if (what == "W") return op("kernel", stream + ",\"reads\":[],\"writes\":[" + buffer(with) + "]");
  if (what == "HR") return op("host_read", "\"buffer\":" + buffer(on));
  if (what == "HW") return op("host_write", "\"buffer\":" + buffer(on));
  if (what == "release" || what == "acquire") {
    return op(what,
              "\"token\":\"" + on + "\"" + (with.empty() ? "" : ",\"stream\":\"" + with + "\""));
  }
  if (what == "sync" || what == "destroy") return op("stream_" + what, stream);
  if (what == "device_sync") return op(what, "\"device\":" + (on.empty() ? "0" : on));
  if (what == "use") return op("record_use", stream + ",\"buffer\":" + buffer(with));
  if (what == "alloc" || what == "free") {
    std::string pool = "caching";
    in >> pool;
    const std::string range = buffer(with);
    return op(what,
              stream + "," + range.substr(1, range.size() - 2) + ",\"pool\":\"" + pool + "\"");
  }
  if (what[0] == '+') return op("record", "\"event\":\"" + what.substr(1) + "\"," + stream);
  if (what[0] == '-') return op("wait", "\"event\":\"" + what.substr(1) + "\"," + stream);
  return "unknown: " + text;
}

TraceReport report_of(const std::vector<std::string>& log, bool leaks = false) {
  std::string text;
  for (const std::string& each : log) text += line_of(each) + "\n";
  std::istringstream in(text);
  LineSource lines(in, "log");
  return check_trace(lines, leaks);
}

// "kind previous→line", "xN" where it was seen N times.
std::string found(const std::vector<std::string>& log, bool leaks = false) {
  std::string all;
  for (const TraceViolation& v : report_of(log, leaks).violations) {
    if (!all.empty()) all += "; ";
    all += std::string(name(v.kind)) + " " + std::to_string(v.previous_line) + "→" +
           std::to_string(v.line);
    if (v.count > 1) all += " x" + std::to_string(v.count);
  }
  return all;
}

struct Case {
  std::vector<std::string> log;
  std::string verdict;
};

void judge(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    std::string text;
    for (const std::string& line : each.log) text += line + "\n";
    EXPECT_EQ(found(each.log), each.verdict) << text;
  }
}

const std::string kLegacy = R"({"op":"stream","id":"0","kind":"legacy"})";
std::string declare(const std::string& id, const std::string& kind, int device = 0) {
  return "{\"op\":\"stream\",\"id\":\"" + id + "\",\"kind\":\"" + kind +
         "\",\"device\":" + std::to_string(device) + "}";
}
// A copy on stream s from x to y.
std::string transfer(const std::string& from, const std::string& to, const std::string& more = "") {
  const auto side = [](const std::string& what, const std::string& place) {
    const std::string kind = place.substr(0, place.find(' '));
    return ",\"" + what + "\":" + buffer(place.substr(kind.size() + 1)) + ",\"" + what +
           "_kind\":\"" + kind + "\"";
  };
  return "{\"op\":\"copy\",\"stream\":\"s\"" + side("src", from) + side("dst", to) + more + "}";
}

TEST(TraceCheck, StreamsAndEvents) {
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

TEST(TraceCheck, ADestroyedEventOrdersNothing) {
  const std::string destroy = R"({"op":"event_destroy","event":"e"})";
  judge({
      {{"W a x", "+e a", destroy, "-e b", "R b x"}, "read after write 1→5"},
      {{"W a x", "+e a", "-e b", destroy, "R b x"}, ""},
      {{"W a x", "+e a", destroy, "+e a", "-e b", "R b x"}, ""},
      {{destroy, "+e a"}, ""},
  });
}

TEST(TraceCheck, TheHostWaits) {
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

TEST(TraceCheck, ASuccessfulQueryIsASynchronisation) {
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

TEST(TraceCheck, TheLegacyDefaultStream) {
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

TEST(TraceCheck, SynchronousCopies) {
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

TEST(TraceCheck, Memsets) {
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

TEST(TraceCheck, HostFunctionsRunInTheirStreamsOrder) {
  const std::string func = R"({"op":"host_func","stream":"a","reads":["x"],"writes":["y"]})";
  judge({
      {{"W a x", func, "R a y"}, ""},
      {{"W b x", func}, "read after write 1→2"},
      {{func, "HR y"}, "read after write 1→2"},
      {{R"({"op":"host_func","stream":"a"})"}, ""},
  });
}

TEST(TraceCheck, TokensOfHostFunctionsOrder) {
  judge({
      {{"W a x", "release t a", "acquire t b", "R b x"}, "deadlock 2→3"},
      {{"W a x", "release t a", "+e a", "-e b", "acquire t b", "R b x"}, ""},
      {{"W a x", "release t a", "acquire t", "R b x"}, ""},
      {{"HW x", "@w release t", "acquire t b", "R b x"}, ""},
  });
}

// Host functions run one at a time, so who waits holds the others up.
TEST(TraceCheck, HostFunctionsThatWaitForGood) {
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
  const TraceViolation v = report_of({"acquire t a", "sync a", "release t"}).violations.at(0);
  EXPECT_EQ(v.message,
            "deadlock: acquire on stream \"a\" (line 1) waits for a token that release on the host "
            "(line 3) releases only after a host function that may be behind this one");
  EXPECT_EQ(v.fix, "release the token before waiting for any host function");
}

// A log with so many streams that the places of destroyed ones are used again.
TEST(TraceCheck, AStreamInTheRoomOfADestroyedOneIsAnother) {
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

TEST(TraceCheck, HostThreads) {
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

TEST(TraceCheck, AStreamDeclaredAfterADeviceSynchronisationStartsSynchronised) {
  judge({
      {{"@t W a x", "@t device_sync", declare("b", "nonblocking"), "@u R b x"}, ""},
      {{"@t W a x", declare("b", "nonblocking"), "@t device_sync", "@u R b x"},
       "read after write 1→4"},
  });
}

TEST(TraceCheck, BytesAreReused) {
  judge({
      {{"alloc a X", "R b X", "free a X", "alloc a X", "W a X"}, "reuse 2→5"},
      {{"alloc a X", "W a X", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "+e b", "-e a", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "use b X", "free a X", "alloc a X", "W a X"}, ""},
      {{"alloc a X", "R b X", "use c X", "free a X", "alloc a X", "W a X"}, "reuse 2→6"},
      {{"alloc a X async", "R b X", "free a X async", "alloc a X async", "W a X"}, "reuse 2→5"},
      {{"alloc a X", "W b X", "free a X", "alloc a X", "R a X"}, "reuse 2→5"},
      {{"alloc a X", "HR X", "free a X", "@u alloc a X", "@u W a X"}, "reuse 2→5"},
      // Two streams' blocks.
      {{"alloc a X", "W a X", "free a X", "alloc b X", "W b X"}, "reuse 2→5"},
      // cudaFree waits.
      {{"alloc a X malloc", "R b X", "free a X malloc", "alloc a X malloc", "W a X"}, ""},
      {{"alloc a X malloc", "R b X", "free a X malloc", "alloc a X", "W a X"}, ""},
      {{"alloc a X malloc", "R b X", "free a X", "alloc a X", "W a X"}, "reuse 2→5"},
  });
}

TEST(TraceCheck, HostMemoryUnderACopy) {
  judge({
      {{"alloc s X host", transfer("pinned X", "device y"), "HW X"}, "rewrite under a copy 2→3"},
      {{"alloc s X host", transfer("pinned X", "device y"), "sync s", "HW X"}, ""},
      {{"alloc s X host", transfer("pinned X", "device y"), "free s X host"},
       "free under a copy 2→3"},
      {{"alloc s X host", transfer("pinned X", "device y"), "sync s", "free s X host"}, ""},
      {{"alloc s X host", transfer("pinned X", "device y"), "use s X", "free s X host"}, ""},
      // The free was reported: the next owner is not to blame.
      {{"alloc s X host", transfer("pinned X", "device y"), "free s X host", "alloc s X host",
        "HW X"},
       "free under a copy 2→3"},
      {{"alloc s X", transfer("device X", "pinned h"), "free s X"}, ""},
  });
}

TEST(TraceCheck, Lifetimes) {
  const auto bytes = [](int address, int count) {
    return R"({"op":"host_read","buffer":{"address":)" + std::to_string(address) +
           ",\"bytes\":" + std::to_string(count) + "}}";
  };
  judge({
      {{"alloc a A", "free a A", "R a A"}, "use after free 2→3"},
      {{"alloc a A", "free a A", "use b A"}, "use after free 2→3"},
      {{"alloc a A", "free a A", "alloc a A", "R a A"}, ""},
      {{"alloc a A", "free a A", "free a A"}, "double free 2→3"},
      {{"free a A", "R a A"}, ""},  // not the log's
      {{"alloc a A", bytes(1008, 8)}, ""},
      {{"alloc a A", bytes(1008, 9)}, "use outside an allocation 1→2"},
      {{"alloc a A", bytes(999, 9)}, "use outside an allocation 1→2"},
      {{"alloc a A", bytes(1016, 9)}, ""},
      {{"alloc a A", "free a A", bytes(1016, 0), bytes(1000, 0)}, ""},
      {{"alloc a A malloc", "free a A malloc", "R a A"}, "use after free 2→3"},
  });
}

TEST(TraceCheck, APoolGivesOutWhatAnotherOneAllocated) {
  const auto memory = [](const std::string& op, int address, int bytes, const std::string& pool) {
    return "{\"op\":\"" + op + "\",\"stream\":\"a\",\"address\":" + std::to_string(address) +
           ",\"bytes\":" + std::to_string(bytes) + ",\"pool\":\"" + pool + "\"}";
  };
  const std::string segment = memory("alloc", 1000, 4000, "malloc");
  judge({
      {{segment, "alloc a A", "alloc a B", "W a A", "free a A", "free a B",
        memory("free", 1000, 4000, "malloc")},
       ""},
      {{segment, "alloc a A", "free a A", "W a A"}, "use after free 3→4"},
      {{segment, "alloc a A", "free a A", memory("free", 1000, 4000, "malloc"), "W a A"},
       "use after free 4→5"},
      {{segment, "alloc a A", "free a A", memory("free", 1000, 4000, "malloc"),
        memory("alloc", 1000, 4000, "malloc"), "W a A"},
       ""},
  });
}

TEST(TraceCheck, ADestroyedStream) {
  judge({
      {{"W a x", "destroy a", "W a x"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", "destroy a"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", "+e a"}, "use of a destroyed stream 2→3"},
      {{"W a x", "destroy a", declare("a", "nonblocking"), "W a y"}, ""},
      // The new one is another stream: destroying waited for nothing.
      {{"W a x", "destroy a", declare("a", "nonblocking"), "R a x"}, "read after write 1→4"},
      {{"W a x", "destroy a", "device_sync", "HR x"}, ""},
      {{"alloc a A", "destroy a", "free a A"}, ""},
  });
}

TEST(TraceCheck, LeaksAreReportedWhereAsked) {
  EXPECT_EQ(found({"alloc a A", "alloc a B", "free a B"}), "");
  EXPECT_EQ(found({"alloc a A", "alloc a B", "free a B"}, true), "leak 0→1");
  EXPECT_EQ(found({"alloc a A malloc"}, true), "leak 0→1");
  EXPECT_EQ(found({"alloc a A", "free a A"}, true), "");
}

TEST(TraceCheck, ABufferInBothListsCountsAsWritten) {
  const std::string update = R"({"op":"kernel","stream":"b","reads":["x"],"writes":["x"]})";
  judge({
      {{"W a x", update}, "write after write 1→2"},
      {{"W a x", "R a x", update}, "write after read 2→3"},
  });
}

TEST(TraceCheck, ZeroBytesTouchNothing) {
  const std::string empty = R"({"op":"kernel","stream":"b","reads":[],)"
                            R"("writes":[{"address":1000,"bytes":0}]})";
  EXPECT_EQ(found({"W a A", empty}), "");
}

TEST(TraceCheck, OneViolationForEachBufferAndPairOfLines) {
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

TEST(TraceCheck, OtherPlacesAreOtherViolations) {
  const auto kernel = [](const std::string& more) {
    return R"({"op":"kernel","stream":"b","reads":["x"],"writes":[])" + more + "}";
  };
  EXPECT_EQ(found({"W a x", kernel(R"(,"where":"f:1")"), "W b x", "sync b", "W a x",
                   kernel(R"(,"where":"f:2")")}),
            "read after write 1→2; read after write 5→6");
}

TEST(TraceCheck, AViolationNamesBothAccessesAndWhatWouldOrderThem) {
  const TraceReport race = report_of({"W a x", "", "R b x"});
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
  const TraceReport reuse = report_of({"alloc a X", "R b X", "free a X", "alloc a X", "W a X"});
  ASSERT_EQ(reuse.violations.size(), 1u);
  EXPECT_EQ(reuse.violations[0].fix,
            "record_use of the buffer on stream \"b\" before it is freed; or record an event on "
            "stream \"b\" after line 2, and wait for it on stream \"a\" before line 5");
  const TraceReport hosts = report_of({"@t HW x", "@u HR x"});
  ASSERT_EQ(hosts.violations.size(), 1u);
  EXPECT_EQ(
      hosts.violations[0].fix,
      "release a token on host thread \"t\" after line 1, and acquire it before line 2 on host "
      "thread \"u\"");
}

TEST(TraceCheck, AMalformedLineIsNamed) {
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

TEST(TraceCheck, ALongLogIsJudgedLikeAShortOne) {
  EXPECT_EQ(long_log(10000, {""}), "read after write 90002→90004; read after write 90002→90005");
  // A second thread learns nothing: nothing may be dropped.
  EXPECT_EQ(long_log(600, {"@t HW y"}), "read after write 5402→5404; read after write 5402→5405");
}

}  // namespace
}  // namespace ferry::check
