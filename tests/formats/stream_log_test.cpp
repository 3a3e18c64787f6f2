// The reader of stream logs: what each line becomes, and what is said of each that is wrong.
#include "formats/stream_log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/line_source.h"

namespace ferry {
namespace {

using Kind = StreamOpKind;
using Ranges = std::vector<Range>;

struct Read {
  StreamLogReader reader{"log"};
  StreamOp op;
  bool any = false;
  explicit Read(std::string_view line) { any = reader.read(line, 7, op); }
  Ranges reads() const { return {op.reads.begin(), op.reads.end()}; }
  Ranges writes() const { return {op.writes.begin(), op.writes.end()}; }
};

constexpr Range kNamed{kNamedBuffers, 1}, kSecond{kNamedBuffers + 2, 1};

TEST(StreamLog, Kernels) {
  const Read k(R"({"op":"kernel","stream":7,"reads":["a",{"address":16,"bytes":4}],)"
               R"("writes":["b"],"name":"mm","unknown":[{"x":1}]})");
  EXPECT_EQ(k.op.kind, Kind::kKernel);
  EXPECT_EQ(k.reader.text(k.op.stream), "7");
  EXPECT_EQ(k.reads(), (Ranges{kNamed, {16, 4}}));
  EXPECT_EQ(k.writes(), (Ranges{kSecond}));
  EXPECT_EQ(k.op.name, "mm");
  EXPECT_EQ(k.reader.text(kSecond), "b");
  EXPECT_EQ(k.reader.text(Range{16, 4}), "");
  const Read func(R"({"op":"host_func","stream":"s","writes":["b"]})");
  EXPECT_EQ(func.op.kind, Kind::kHostFunc);
  EXPECT_EQ(func.writes(), Ranges{kNamed});
}

TEST(StreamLog, ABufferInBothListsIsWritten) {
  const Read k(R"({"op":"kernel","stream":"s","reads":["a","b"],"writes":["b"]})");
  EXPECT_EQ(k.reads().size(), 1u);
  EXPECT_EQ(k.writes().size(), 1u);
}

TEST(StreamLog, Copies) {
  const auto order = [](const std::string& from, const std::string& to, const std::string& more) {
    return Read(R"({"op":"copy","stream":"s","src":"a","dst":"b","src_kind":")" + from +
                R"(","dst_kind":")" + to + "\"" + more + "}")
        .op.host_order;
  };
  const std::string sync = R"(,"api":"sync")", blocked = R"(,"blocked":true)";
  for (const char* from : {"device", "pinned", "pageable"}) {
    for (const char* to : {"device", "pinned", "pageable"}) {
      EXPECT_EQ(order(from, to, ""), HostOrder::kNone);
      EXPECT_EQ(order(from, to, R"(,"api":"async","blocked":false)"), HostOrder::kNone);
      EXPECT_EQ(order(from, to, sync), order(from, to, blocked));
    }
  }
  EXPECT_EQ(order("device", "device", sync), HostOrder::kNone);
  EXPECT_EQ(order("pageable", "device", sync), HostOrder::kStaged);
  EXPECT_EQ(order("pinned", "device", sync), HostOrder::kDone);
  EXPECT_EQ(order("device", "pageable", sync), HostOrder::kDone);
  EXPECT_EQ(order("pinned", "pageable", sync), HostOrder::kDone);
  const Read set(R"({"op":"memset","stream":"s","dst":"b"})");
  EXPECT_EQ(set.op.kind, Kind::kMemset);
  EXPECT_EQ(set.writes(), Ranges{kNamed});
}

TEST(StreamLog, EventsAndSynchronisation) {
  const auto kind = [](std::string_view line) { return Read(line).op.kind; };
  EXPECT_EQ(kind(R"({"op":"record","event":1,"stream":"s"})"), Kind::kRecord);
  EXPECT_EQ(kind(R"({"op":"wait","event":"e","stream":"s"})"), Kind::kWait);
  EXPECT_EQ(kind(R"({"op":"event_sync","event":"e"})"), Kind::kEventSync);
  EXPECT_EQ(kind(R"({"op":"stream_sync","stream":"s"})"), Kind::kStreamSync);
  EXPECT_EQ(kind(R"({"op":"device_sync"})"), Kind::kDeviceSync);
  EXPECT_EQ(Read(R"({"op":"device_sync","device":3})").op.device, 3u);
  EXPECT_EQ(kind(R"({"op":"event_query","event":"e","result":"done"})"), Kind::kEventSync);
  EXPECT_EQ(kind(R"({"op":"stream_query","stream":"s","result":"done"})"), Kind::kStreamSync);
  EXPECT_FALSE(Read(R"({"op":"event_query","event":"e","result":"not_ready"})").any);
  EXPECT_FALSE(Read(R"({"op":"stream_query","stream":"s","result":"not_ready"})").any);
  EXPECT_EQ(kind(R"({"op":"event_destroy","event":"e"})"), Kind::kEventDestroy);
  EXPECT_EQ(kind(R"({"op":"stream_destroy","stream":"s"})"), Kind::kStreamDestroy);
  EXPECT_EQ(kind(R"({"op":"release","token":1})"), Kind::kRelease);
  EXPECT_EQ(kind(R"({"op":"acquire","token":"t"})"), Kind::kAcquire);
  EXPECT_FALSE(Read(R"({"op":"acquire","token":"t"})").op.in_stream);
  EXPECT_TRUE(Read(R"({"op":"acquire","token":"t","stream":"s"})").op.in_stream);
  const Read stream(R"({"op":"stream","id":"s","kind":"legacy","device":2})");
  EXPECT_EQ(stream.op.kind, Kind::kStream);
  EXPECT_EQ(stream.op.stream_kind, StreamKind::kLegacy);
  EXPECT_EQ(stream.op.device, 2u);
}

TEST(StreamLog, Memory) {
  const Read alloc(R"({"op":"alloc","address":4096,"bytes":16,"stream":"s","pool":"async"})");
  EXPECT_EQ(alloc.op.kind, Kind::kAlloc);
  EXPECT_EQ(alloc.op.range, (Range{4096, 16}));
  EXPECT_EQ(alloc.op.pool, PoolKind::kAsync);
  const Read free(R"({"op":"free","address":4096,"bytes":0,"stream":"s","pool":"malloc"})");
  EXPECT_EQ(free.op.kind, Kind::kFree);
  EXPECT_EQ(free.op.pool, PoolKind::kMalloc);
  const Read use(R"({"op":"record_use","buffer":{"bytes":1,"address":2},"stream":"s"})");
  EXPECT_EQ(use.op.kind, Kind::kRecordUse);
  EXPECT_EQ(use.op.range, (Range{2, 1}));
  EXPECT_FALSE(use.op.until_event);
  const Read until(R"({"op":"record_use","buffer":"x","stream":"s","event":3})");
  EXPECT_TRUE(until.op.until_event);
  EXPECT_EQ(Read(R"({"op":"host_read","buffer":"x"})").op.kind, Kind::kHostRead);
  EXPECT_EQ(Read(R"({"op":"host_view","buffer":"x"})").op.kind, Kind::kHostView);
  EXPECT_EQ(Read(R"({"op":"host_view_end","buffer":"x"})").op.kind, Kind::kHostViewEnd);
  EXPECT_EQ(Read(R"({"op":"host_write","buffer":"x"})").op.range, kNamed);
}

TEST(StreamLog, AnyLineMayCarryAThreadAndAPlace) {
  const Read line(R"({"op":"event_sync","event":1,"thread":"engine","where":"a.py:3","device":1})");
  EXPECT_EQ(line.reader.text(line.op.thread), "engine");
  EXPECT_EQ(line.op.name, "event_sync at a.py:3");
  EXPECT_EQ(Read(R"({"op":"host_read","buffer":"x","thread":4})").op.thread, HostThread{1});
  EXPECT_EQ(Read(R"({"op":"host_read","buffer":"x"})").op.thread, HostThread{0});
  const Read named(R"({"op":"kernel","stream":1,"reads":[],"writes":[],"name":"k","where":"w"})");
  EXPECT_EQ(named.op.name, "k at w");
}

TEST(StreamLog, AnIntegerIsItsDecimalString) {
  StreamLogReader reader("log");
  StreamOp first, second;
  reader.read(R"({"op":"stream_sync","stream":12})", 1, first);
  reader.read(R"({"op":"stream_sync","stream":"12"})", 2, second);
  EXPECT_EQ(first.stream, second.stream);
}

TEST(StreamLog, BlankLinesSayNothing) {
  EXPECT_FALSE(Read("").any);
  EXPECT_FALSE(Read(" \t\r").any);
}

TEST(StreamLog, AHeaderSaysNothing) {
  EXPECT_FALSE(Read(R"({"ferry":"hazard","schema":1})").any);
  EXPECT_TRUE(Read(R"({"ferry":1,"op":"kernel","stream":"s","reads":[],"writes":["a"]})").any);
}

TEST(StreamLog, ADestroyedEventsIdIsFree) {
  StreamLogReader reader("log");
  StreamOp op;
  for (int i = 0; i < 1000; ++i) {
    const std::string event = "\"event\":" + std::to_string(i);
    reader.read("{\"op\":\"record\",\"stream\":1," + event + "}", 1, op);
    reader.read("{\"op\":\"event_destroy\"," + event + "}", 1, op);
    EXPECT_LT(static_cast<std::uint32_t>(op.event), 2u);
  }
  EXPECT_LE(reader.names(), 2u);  // the stream, and the last event
}

TEST(StreamLog, WhatIsWrongIsSaid) {
  const std::string id = "a string or an integer";
  const std::string buffer = "a name or {\"address\":A,\"bytes\":N}";
  const std::string memory = "\"device\", \"pinned\" or \"pageable\"";
  const std::string kernel = R"({"op":"kernel","stream":"s",)";
  const std::string copy = R"({"op":"copy","stream":"s","src":"a","dst":"b",)";
  const std::string alloc = R"({"op":"alloc","stream":"s","pool":"host",)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"nonsense", "expected '{' at column 1"},
      {R"({"op":"device_sync")", "expected ',' or '}' at column 20"},
      {R"({"op":"device_sync"} x)", "expected the end of the line at column 22"},
      {R"({"op":"device_sync","op":"wait"})", "expected \"op\" once at column 26"},
      {"{}", "expected \"op\": the name of an operation"},
      {R"({"op":"record","stream":"s"})", "expected \"event\": " + id},
      {R"({"op":"record","event":1.5,"stream":"s"})", "expected \"event\": " + id + ", not 1.5"},
      {R"({"op":"wait","event":1})", "expected \"stream\": " + id},
      {R"({"op":"wait","event":1,"stream":null})", "expected \"stream\": " + id + ", not null"},
      {R"({"op":"stream","kind":"legacy"})", "expected \"id\": " + id},
      {R"({"op":"stream","id":1})",
       "expected \"kind\": \"nonblocking\", \"blocking\" or \"legacy\""},
      {R"({"op":"stream","id":1,"kind":"fast"})",
       "expected \"kind\": \"nonblocking\", \"blocking\" or \"legacy\", not \"fast\""},
      {kernel + R"("writes":[]})", "expected \"reads\": a list of buffers"},
      {kernel + R"("reads":[]})", "expected \"writes\": a list of buffers"},
      {kernel + R"("reads":"x","writes":[]})", "expected \"reads\": a list of buffers, not \"x\""},
      {kernel + R"("reads":[1],"writes":[]})", "expected \"reads\": " + buffer + ", not [1]"},
      {kernel + R"("reads":[{"address":1}],"writes":[]})",
       "expected \"reads\": " + buffer + ", not [{\"address\":1}]"},
      {kernel + R"("reads":[],"writes":[{"address":-1,"bytes":1}]})",
       "expected \"writes\": " + buffer + ", not [{\"address\":-1,\"bytes\":1}]"},
      {kernel + R"("reads":[],"writes":[],"name":1})", "expected \"name\": a string, not 1"},
      {kernel + R"("reads":[],"writes":[],"where":[]})", "expected \"where\": a string, not []"},
      {kernel + R"("reads":[],"writes":[],"thread":{}})",
       "expected \"thread\": " + id + ", not {}"},
      {copy + R"("dst_kind":"device"})", "expected \"src_kind\": " + memory},
      {copy + R"("src_kind":"device","dst_kind":"host"})",
       "expected \"dst_kind\": " + memory + ", not \"host\""},
      {copy + R"("src_kind":"device","dst_kind":"pinned","api":"fast"})",
       "expected \"api\": \"async\" or \"sync\", not \"fast\""},
      {copy + R"("src_kind":"device","dst_kind":"pinned","blocked":1})",
       "expected \"blocked\": true or false, not 1"},
      {R"({"op":"copy","stream":"s","dst":"b"})", "expected \"src\": " + buffer},
      {R"({"op":"memset","stream":"s"})", "expected \"dst\": " + buffer},
      {R"({"op":"event_query","event":1})", "expected \"result\": \"not_ready\" or \"done\""},
      {R"({"op":"device_sync","device":"gpu"})",
       "expected \"device\": an integer of at least 0, not \"gpu\""},
      {R"({"op":"device_sync","device":4294967296})",
       "expected \"device\": at most 4294967295, not 4294967296"},
      {alloc + R"("bytes":1})", "expected \"address\": an integer of at least 0"},
      {alloc + R"("address":1})", "expected \"bytes\": an integer of at least 0"},
      {alloc + R"("address":1,"bytes":-5})",
       "expected \"bytes\": an integer of at least 0, not -5"},
      {alloc + R"("address":18446744073709551615,"bytes":1})",
       "expected \"address\": bytes that end below address 576460752303423488 (2^59), "
       "not 18446744073709551615"},
      {R"({"op":"free","stream":"s","address":1,"bytes":1})",
       "expected \"pool\": \"caching\", \"async\", \"host\" or \"malloc\""},
      {R"({"op":"record_use","stream":"s"})", "expected \"buffer\": " + buffer},
      {R"({"op":"host_read"})", "expected \"buffer\": " + buffer},
      {R"({"op":"release"})", "expected \"token\": " + id},
  };
  for (const auto& [line, message] : cases) {
    try {
      Read read(line);
      ADD_FAILURE() << "accepted: " << line;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "log:7: " + message) << line;
    }
  }
}

TEST(StreamLog, AnUnknownOperationIsAnsweredWithTheKnownOnes) {
  try {
    Read read(R"({"op":"dance"})");
    ADD_FAILURE();
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\"stream\", \"stream_destroy\""), std::string::npos) << text;
    EXPECT_NE(text.find("or \"host_view_end\", not \"dance\""), std::string::npos) << text;
  }
}

TEST(LineSource, GivesLinesOfAnyLength) {
  const std::string large(1 << 20, 'x');
  for (const bool ends : {true, false}) {
    std::istringstream in("a\n\n" + large + "\nlast" + (ends ? "\n" : ""));
    LineSource lines(in, "log");
    std::vector<std::string> all;
    std::string_view line;
    while (lines.next(line)) all.emplace_back(line);
    EXPECT_EQ(all, (std::vector<std::string>{"a", "", large, "last"}));
    EXPECT_EQ(lines.number(), 4u);
  }
}

}  // namespace
}  // namespace ferry
