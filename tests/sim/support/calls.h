// A recording, call by call: streams and events are numbers, every call is one op.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/check/happens_before.h"
#include "sim/explore/recording.h"

namespace ferry::test {

class Calls {
 public:
  using Ranges = std::vector<Range>;

  Calls& kernel(std::uint32_t stream, const Ranges& reads, const Ranges& writes,
                std::string_view name = "k") {
    StreamOp op = of(StreamOpKind::kKernel, stream);
    op.reads = reads;
    op.writes = writes;
    op.name = name;
    return give(op);
  }
  Calls& copy(std::uint32_t stream, Range from, Range to, Step step = Step::kUser,
              HostOrder order = HostOrder::kNone) {
    StreamOp op = of(StreamOpKind::kCopy, stream);
    op.reads = {&from, 1};
    op.writes = {&to, 1};
    op.step = step;
    op.host_order = order;
    return give(op);
  }
  Calls& record(std::uint32_t event, std::uint32_t stream) {
    return ordering(StreamOpKind::kRecord, event, stream);
  }
  Calls& wait(std::uint32_t event, std::uint32_t stream) {
    return ordering(StreamOpKind::kWait, event, stream);
  }
  Calls& stream_sync(std::uint32_t stream) { return give(of(StreamOpKind::kStreamSync, stream)); }
  Calls& alloc(std::uint32_t stream, Range range) {
    return memory(StreamOpKind::kAlloc, stream, range);
  }
  Calls& free(Range range, PoolKind pool = PoolKind::kCaching) {
    StreamOp op = of(StreamOpKind::kFree, 0);
    op.range = range;
    op.pool = pool;
    return give(op);
  }
  Calls& record_use(std::uint32_t stream, Range range) {
    return memory(StreamOpKind::kRecordUse, stream, range);
  }
  Calls& use_until(std::uint32_t event, Range range) {
    StreamOp op = of(StreamOpKind::kRecordUse, 0);
    op.event = EventId{event};
    op.until_event = true;
    op.range = range;
    return give(op);
  }
  Calls& host_read(Range range) { return memory(StreamOpKind::kHostRead, 0, range); }
  Calls& host_write(Range range) { return memory(StreamOpKind::kHostWrite, 0, range); }

  const explore::Recording& recording() const { return recording_; }
  const std::vector<check::Hazard>& hazards() const { return checker_.hazards(); }

 private:
  static StreamOp of(StreamOpKind kind, std::uint32_t stream) {
    StreamOp op;
    op.kind = kind;
    op.stream = StreamId{stream};
    return op;
  }
  Calls& ordering(StreamOpKind kind, std::uint32_t event, std::uint32_t stream) {
    StreamOp op = of(kind, stream);
    op.event = EventId{event};
    return give(op);
  }
  Calls& memory(StreamOpKind kind, std::uint32_t stream, Range range) {
    StreamOp op = of(kind, stream);
    op.range = range;
    return give(op);
  }
  Calls& give(const StreamOp& op) {
    recording_(op);
    checker_(op);
    return *this;
  }

  explore::Recording recording_;
  check::HappensBefore checker_;
};

}  // namespace ferry::test
