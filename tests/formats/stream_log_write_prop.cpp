// Whatever operations are written, the reader of stream logs reads the same ones; and each of a
// number of broken writers is found out.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/stream_log.h"
#include "formats/stream_log_write.h"

namespace ferry {
namespace {

using Kind = StreamOpKind;

constexpr Kind kLast = Kind::kHostViewEnd;

struct Drawn {
  StreamOp op;
  std::vector<Range> reads, writes;
  std::string name;

  StreamOp whole() const {
    StreamOp all = op;
    all.reads = reads;
    all.writes = writes;
    all.name = name;
    return all;
  }
};

std::uint32_t below(std::uint32_t end) {
  return *rc::gen::resize(100, rc::gen::inRange<std::uint32_t>(0, end));
}

Range range() {
  const std::uint64_t address = *rc::gen::element<std::uint64_t>(0, 512, 4096, kNamedBuffers - 64);
  return {address + below(32), below(32)};
}

std::vector<Range> ranges() {
  std::vector<Range> all;
  for (std::uint32_t i = below(4); i > 0; --i) all.push_back(range());
  return all;
}

HostOrder order_of(CopyKind copy) {
  if (copy == CopyKind::kDeviceToDevice) return HostOrder::kNone;
  if (copy == CopyKind::kDeviceToHost) return below(2) == 0 ? HostOrder::kNone : HostOrder::kDone;
  return static_cast<HostOrder>(below(3));
}

void draw_body(Drawn& drawn) {
  StreamOp& op = drawn.op;
  const auto stream = [&] { op.stream = StreamId{below(4)}; };
  switch (op.kind) {
    case Kind::kKernel:
    case Kind::kHostFunc:
      stream();
      drawn.writes = ranges();
      for (const Range& each : ranges()) {  // what is in both lists is written
        if (std::find(drawn.writes.begin(), drawn.writes.end(), each) == drawn.writes.end()) {
          drawn.reads.push_back(each);
        }
      }
      return;
    case Kind::kCopy:
      stream();
      op.copy = *rc::gen::element(CopyKind::kDeviceToHost, CopyKind::kHostToDevice,
                                  CopyKind::kDeviceToDevice);
      op.host_order = order_of(op.copy);
      drawn.reads = {range()};
      drawn.writes = {range()};
      if (drawn.reads == drawn.writes) drawn.writes[0].address += 64;
      return;
    case Kind::kMemset:
      stream();
      drawn.writes = {range()};
      op.host_order = below(2) == 0 ? HostOrder::kNone : HostOrder::kDone;
      return;
    case Kind::kRecord:
    case Kind::kWait:
      stream();
      [[fallthrough]];
    case Kind::kEventSync:
    case Kind::kEventDestroy:
      op.event = EventId{below(4)};
      return;
    case Kind::kAlloc:
    case Kind::kFree:
      stream();
      op.range = range();
      op.pool = static_cast<PoolKind>(below(4));
      return;
    case Kind::kRecordUse:
      stream();
      op.range = range();
      return;
    case Kind::kHostRead:
    case Kind::kHostWrite:
    case Kind::kHostView:
    case Kind::kHostViewEnd:
      op.range = range();
      return;
    case Kind::kRelease:
    case Kind::kAcquire:
      op.token = HostToken{below(4)};
      op.in_stream = below(2) == 1;
      if (op.in_stream) stream();
      return;
    case Kind::kStream:
      op.stream_kind = static_cast<StreamKind>(below(3));
      [[fallthrough]];
    case Kind::kStreamSync:
    case Kind::kStreamDestroy:
      return stream();
    case Kind::kDeviceSync:
      return;
  }
}

// Some operations are of a graph.
void draw_graph(StreamOp& op) {
  const bool is_node = op.kind == Kind::kKernel || op.kind == Kind::kHostFunc ||
                       op.kind == Kind::kCopy || op.kind == Kind::kMemset;
  if ((!is_node && op.kind != Kind::kAlloc) || below(3) == 0) return;
  if (!is_node) op.graph_pool = 1 + below(3);
  if (!is_node && below(2) == 0) return;  // not during a capture
  op.graph = GraphId{1 + below(3)};
  if (!is_node) return;
  op.node = below(4);
  op.captured = below(2) == 0;
  if (op.captured) op.host_order = HostOrder::kNone;
}

std::vector<Drawn> draw_ops() {
  std::vector<Drawn> ops(10 + below(30));
  for (Drawn& drawn : ops) {
    drawn.op.kind = static_cast<Kind>(below(static_cast<std::uint32_t>(kLast) + 1));
    drawn.op.thread = HostThread{below(3)};
    drawn.op.device = below(2) * below(3);
    drawn.name = *rc::gen::element<std::string>("", "mm", "a \"b\"\\\n", "µs", "\x01");
    draw_body(drawn);
    draw_graph(drawn.op);
  }
  return ops;
}

// Numbers of one side as the other's, in the order of first use.
class SameIds {
 public:
  bool same(std::uint32_t written, std::uint32_t read) {
    return to_.try_emplace(written, read).first->second == read &&
           back_.try_emplace(read, written).first->second == written;
  }
  void forget(std::uint32_t written) {
    back_.erase(to_.at(written));
    to_.erase(written);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> to_, back_;
};

using Bend = std::function<std::string(std::string)>;

// Whether every line is read as what was written.
bool comes_back(const std::vector<Drawn>& ops, const Bend& bend) {
  StreamLogText text;
  StreamLogReader reader("log");
  SameIds events, tokens, graphs, pools;
  const auto equal = [](std::span<const Range> a, std::span<const Range> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const StreamOp op = ops[i].whole();
    const std::string line = bend(std::string(text.line(op)));
    StreamOp read;
    try {
      if (!reader.read(std::string_view(line).substr(0, line.size() - 1), i + 1, read))
        return false;
    } catch (const std::exception&) {
      return false;
    }
    const auto number = [](auto id) { return static_cast<std::uint32_t>(id); };
    const bool token = op.kind == Kind::kRelease || op.kind == Kind::kAcquire;
    const bool streams = op.kind != Kind::kEventSync && op.kind != Kind::kEventDestroy &&
                         op.kind != Kind::kHostRead && op.kind != Kind::kHostWrite &&
                         op.kind != Kind::kHostView && op.kind != Kind::kHostViewEnd &&
                         op.kind != Kind::kDeviceSync && (!token || op.in_stream);
    const bool event = op.kind == Kind::kRecord || op.kind == Kind::kWait ||
                       op.kind == Kind::kEventSync || op.kind == Kind::kEventDestroy;
    const bool same = read.kind == op.kind && read.copy == op.copy && read.pool == op.pool &&
                      read.device == op.device && read.in_stream == op.in_stream &&
                      read.stream_kind == op.stream_kind && read.host_order == op.host_order &&
                      read.range == op.range && read.name == op.name &&
                      equal(read.reads, op.reads) && equal(read.writes, op.writes) &&
                      reader.text(read.thread) ==
                          (number(op.thread) == 0 ? "" : std::to_string(number(op.thread))) &&
                      (!streams || reader.text(read.stream) == std::to_string(number(op.stream))) &&
                      (!event || events.same(number(op.event), number(read.event))) &&
                      read.node == op.node && read.captured == op.captured &&
                      graphs.same(number(op.graph), number(read.graph)) &&
                      pools.same(op.graph_pool, read.graph_pool) &&
                      (!token || tokens.same(number(op.token), number(read.token)));
    if (!same) return false;
    if (op.kind == Kind::kEventDestroy) events.forget(number(op.event));
  }
  return true;
}

RC_GTEST_PROP(StreamLogWriteProp, WhatIsReadIsWhatWasWritten, ()) {
  RC_ASSERT(comes_back(draw_ops(), [](std::string line) { return line; }));
}

Bend replaced(std::string from, std::string to) {
  return [=](std::string line) {
    const std::size_t at = line.find(from);
    return at == std::string::npos ? line : line.replace(at, from.size(), to);
  };
}

TEST(StreamLogWriteProp, BrokenWritersAreFoundOut) {
  const std::pair<const char*, Bend> broken[] = {
      {"no thread", replaced(",\"thread\":", ",\"other\":")},
      {"no device", replaced(",\"device\":", ",\"other\":")},
      {"no name", replaced(",\"name\":", ",\"other\":")},
      {"a longer buffer", replaced("\"bytes\":", "\"bytes\":1")},
      {"another address", replaced("\"address\":", "\"address\":1")},
      {"reads as writes", replaced("\"reads\":", "\"writes\":")},
      {"source and target",
       [](std::string line) {
         line = replaced("\"src\":", "\"tmp\":")(line);
         line = replaced("\"dst\":", "\"src\":")(line);
         return replaced("\"tmp\":", "\"dst\":")(line);
       }},
      {"never blocked", replaced(",\"blocked\":true", "")},
      {"pageable as pinned", replaced("pageable", "pinned")},
      {"to the host as within", replaced("\"dst_kind\":\"pinned\"", "\"dst_kind\":\"device\"")},
      {"an event for all", replaced("\"event\":3", "\"event\":2")},
      {"a token for all", replaced("\"token\":3", "\"token\":2")},
      {"a stream for all", replaced("\"stream\":3", "\"stream\":2")},
      {"a pool for all", replaced("\"pool\":\"async\"", "\"pool\":\"caching\"")},
      {"no legacy streams", replaced("legacy", "blocking")},
      {"a wait as a record", replaced("\"op\":\"wait\"", "\"op\":\"record\"")},
      {"a free as an alloc", replaced("\"op\":\"free\"", "\"op\":\"alloc\"")},
      {"a graph for all", replaced("\"graph\":3", "\"graph\":2")},
      {"a pool of graphs for all", replaced("\"graph_pool\":3", "\"graph_pool\":2")},
      {"a node for all", replaced("\"node\":3", "\"node\":2")},
      {"a capture as a replay", replaced(",\"captured\":true", "")},
      {"a name without escapes", replaced("\\\"", "\"")},
  };
  for (const auto& [name, bend] : broken) {
    bool found = false;
    rc::check([&found, bend = bend] { found = found || !comes_back(draw_ops(), bend); });
    EXPECT_TRUE(found) << name;
  }
}

}  // namespace
}  // namespace ferry
