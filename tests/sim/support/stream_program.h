// Random programs of stream operations, from a few numbers for each op: so that they shrink, and so
// that who has no RapidCheck can draw them, too.
//
// 2 to 4 streams, one of them now and then blocking beside a legacy one; 3 events; one or two host
// threads with two tokens; a few bytes of device memory and of the host's, in ranges of up to 4. A
// pool that never hands out what is in use, and is told of uses, or not; frees by cudaFree.
// Accesses are anywhere: many a program is wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/hash.h"
#include "formats/stream_op.h"
#include "sim/check/hazard.h"

namespace ferry::test {

using Draw = std::array<std::uint32_t, 6>;

struct StreamProgram {
  struct Call {
    StreamOp op;  // without its spans and name
    std::vector<Range> reads, writes;
    std::string name;
  };
  std::vector<Call> calls;

  // Calls f(op) for each, with its spans and name.
  template <class F>
  void each(F&& f) const {
    for (const Call& call : calls) {
      StreamOp op = call.op;
      op.reads = call.reads;
      op.writes = call.writes;
      op.name = call.name;
      f(op);
    }
  }
};

struct ProgramShape {
  std::size_t accesses = 10;  // at most so many ops that touch memory
  std::uint32_t cells = 8;    // bytes of the device's memory, and of the host's
  bool pools = true;          // alloc, free, record_use
  bool legacy = true;         // streams of other kinds than nonblocking
};

class ProgramMaker {
 public:
  ProgramMaker(const std::vector<Draw>& draws, const ProgramShape& shape) : shape_(shape) {
    const std::uint32_t first = draws.empty() ? 0 : draws[0][0];
    streams_ = 2 + first % 3;
    threads_ = 1 + first / 3 % 2;
    if (shape.legacy && first / 6 % 4 == 0) declare();
    for (const Draw& draw : draws) {
      if (accesses_ == shape.accesses) break;
      add(draw);
    }
  }
  StreamProgram program;

 private:
  Range range_of(std::uint32_t draw) const {
    const std::uint64_t base = draw % 4 != 0 ? 0 : check::kHostBase;
    const std::uint64_t at = draw / 16 % shape_.cells;
    return {base + at, std::min<std::uint64_t>(shape_.cells - at, 1 + draw / 4 % 4)};
  }

  StreamProgram::Call& push(StreamOpKind kind) {
    StreamProgram::Call& call = program.calls.emplace_back();
    call.op.kind = kind;
    call.name = std::to_string(program.calls.size() - 1);  // every pair is a report of its own
    return call;
  }

  // Stream 0: the legacy one. The last one stays nonblocking.
  void declare() {
    for (std::uint32_t i = 0; i + 1 < streams_; ++i) {
      StreamOp& op = push(StreamOpKind::kStream).op;
      op.stream = StreamId{i};
      op.stream_kind = i == 0 ? StreamKind::kLegacy : StreamKind::kBlocking;
    }
  }

  void add(const Draw& d) {
    static constexpr std::array<StreamOpKind, 20> kKinds = {
        StreamOpKind::kKernel,   StreamOpKind::kKernel,    StreamOpKind::kKernel,
        StreamOpKind::kCopy,     StreamOpKind::kCopy,      StreamOpKind::kRecord,
        StreamOpKind::kRecord,   StreamOpKind::kWait,      StreamOpKind::kWait,
        StreamOpKind::kWait,     StreamOpKind::kEventSync, StreamOpKind::kStreamSync,
        StreamOpKind::kHostRead, StreamOpKind::kHostWrite, StreamOpKind::kRelease,
        StreamOpKind::kAcquire,  StreamOpKind::kAlloc,     StreamOpKind::kAlloc,
        StreamOpKind::kFree,     StreamOpKind::kRecordUse,
    };
    static constexpr std::array<StreamOpKind, 4> kRare = {
        StreamOpKind::kMemset, StreamOpKind::kHostFunc, StreamOpKind::kDeviceSync,
        StreamOpKind::kEventDestroy};
    StreamOpKind kind = d[0] % 21 == 20 ? kRare[d[0] / 21 % 4] : kKinds[d[0] % 21];
    const bool memory = kind == StreamOpKind::kAlloc || kind == StreamOpKind::kFree ||
                        kind == StreamOpKind::kRecordUse;
    if (memory && !shape_.pools) kind = StreamOpKind::kKernel;
    StreamProgram::Call& call = push(kind);
    StreamOp& op = call.op;
    op.stream = StreamId{d[1] % streams_};
    op.event = EventId{d[2] % 3};
    op.token = HostToken{d[2] % 2};
    op.thread = HostThread{d[1] / 8 % threads_};
    switch (kind) {
      case StreamOpKind::kHostRead:
      case StreamOpKind::kHostWrite:
        op.range = range_of(d[3]);
        accesses_++;
        break;
      case StreamOpKind::kMemset:
        call.writes = {range_of(d[4])};
        accesses_++;
        break;
      case StreamOpKind::kCopy:
        call.reads = {range_of(d[3])};
        call.writes = {range_of(d[4])};
        if (d[5] % 4 == 0)
          op.host_order = d[5] / 4 % 2 == 0 ? HostOrder::kStaged : HostOrder::kDone;
        accesses_++;
        break;
      case StreamOpKind::kKernel:
      case StreamOpKind::kHostFunc:
        call.reads.assign(d[5] % 2, range_of(d[3]));
        call.writes.assign(1 - d[5] % 2, range_of(d[4]));
        if (d[5] / 2 % 3 == 0) call.reads.push_back(range_of(d[5] / 8));
        if (d[5] / 2 % 3 == 1) call.writes.push_back(range_of(d[5] / 8));
        accesses_++;
        break;
      default:
        if (memory) pool(op, d);
    }
  }

  void pool(StreamOp& op, const Draw& d) {
    const auto pick = live_.empty() ? live_.end() : live_.begin() + d[4] % live_.size();
    if (op.kind == StreamOpKind::kAlloc) {
      const std::uint64_t base = d[3] % 4 != 0 ? 0 : check::kHostBase;
      const std::uint64_t at = d[4] % (shape_.cells / 2) * 2;
      op.range = {base + at, d[5] % 2 == 0 || at + 2 == shape_.cells ? 2u : 4u};
      for (const Range& other : live_) {
        if (other.address < op.range.end() && op.range.address < other.end()) op.range.bytes = 0;
      }
      if (op.range.bytes != 0) live_.push_back(op.range);
    } else if (pick == live_.end()) {
      op.range = {};
    } else if (op.kind == StreamOpKind::kFree) {
      op.range = *pick;
      if (d[5] % 8 == 0 && !check::is_host(op.range.address)) op.pool = PoolKind::kMalloc;
      live_.erase(pick);
    } else {
      op.range = {pick->address + d[5] % 2, 1};
      op.until_event = d[5] / 2 % 3 == 0;
    }
  }

  ProgramShape shape_;
  std::uint32_t streams_ = 2, threads_ = 1;
  std::size_t accesses_ = 0;
  std::vector<Range> live_;
};

// The op orders and touches nothing any more; those after it keep their numbers.
inline void forget(StreamProgram::Call& call) {
  call.op = StreamOp{};
  call.op.kind = StreamOpKind::kEventDestroy;
  call.op.event = EventId{~0u};
  call.reads.clear();
  call.writes.clear();
}

inline StreamProgram make_program(const std::vector<Draw>& draws, const ProgramShape& shape = {}) {
  return ProgramMaker(draws, shape).program;
}

// Drawn from a counter (SplitMix64), for those without RapidCheck: between 4 and 60 draws.
inline std::vector<Draw> draw_program(std::uint64_t seed) {
  std::uint64_t state = seed * 0xd1342543de82ef95ull;
  const auto next = [&] { return spread_bits(state += 0x9e3779b97f4a7c15ull); };
  std::vector<Draw> draws(4 + next() % 57);
  for (Draw& draw : draws) {
    for (std::uint32_t& number : draw) number = static_cast<std::uint32_t>(next() >> 33);
  }
  return draws;
}

inline std::string to_text(const StreamProgram& program) {
  std::string text;
  program.each([&](const StreamOp& op) {
    text.append(op.name).append(" ").append(check::name(op.kind));
    text += " s" + std::to_string(static_cast<std::uint32_t>(op.stream));
    text += " e" + std::to_string(static_cast<std::uint32_t>(op.event));
    text += " thread " + std::to_string(static_cast<std::uint32_t>(op.thread));
    if (op.host_order != HostOrder::kNone) {
      text += op.host_order == HostOrder::kStaged ? " staged" : " done";
    }
    if (op.range.bytes != 0) text += " " + check::to_string(op.range);
    for (const Range& range : op.reads) text += " reads " + check::to_string(range);
    for (const Range& range : op.writes) text += " writes " + check::to_string(range);
    text += "\n";
  });
  return text;
}

}  // namespace ferry::test
