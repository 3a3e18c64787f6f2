// Submission, the half of the engine that a host calls for every operation. It is in a header
// because a caller knows a copy's direction, or that a kernel uses no memory, and the compiler then
// leaves out the rest. Rare cases are in engine.cpp. Part of sim/gpu/engine.h: include that.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/gpu/engine.h"
#include "sim/gpu/engine_ops.h"

namespace ferry::sim {

inline Engine::Stream& Engine::stream_of(StreamId stream) {
  engine::require(engine::number(stream) < streams_.size(), "no such stream");
  return streams_[engine::number(stream)];
}

// A queue has a chunk only if it has more than its front.
inline OpIndex Engine::submit(Stream& s, OpKind kind, std::int64_t value, Time not_before) {
  engine::require(not_before >= now_,
                  "an operation was issued before the time already advanced to");
  const OpIndex op = next_op_++;
  const std::uint64_t tag = op << QueuedOp::kKindBits | static_cast<std::uint64_t>(kind);
  if (!s.ops.try_push({tag, not_before, value})) submit_slowly(s, tag, value, not_before);
  return op;
}

// Notes that the stream uses the engine. A second stream makes an engine shared for ever, which is
// all that running ahead needs to know. Returns true for the first stream.
inline bool Engine::use(Unit& unit, std::uint32_t stream) {
  if (unit.user == stream) return false;
  const bool first = unit.user == kNone;
  unit.user = first ? stream : engine::kShared;
  return first;
}

inline OpIndex Engine::kernel(StreamId stream, KernelTime time, Time not_before) {
  engine::require(static_cast<std::uint64_t>(time.ns) >> engine::kKernelNsBits == 0,
                  "a kernel takes 0 to 1e15 ns");
  const Time ns = std::max<Time>(time.ns, 1);
  std::int64_t value = ns << engine::kShareBits;
  if (time.memory_ns != 0) {
    engine::require(time.memory_ns > 0, "a kernel's time of the memory must not be negative");
    value |= (std::min(time.memory_ns, ns) * engine::kWhole + ns - 1) / ns;
  }
  Stream& s = stream_of(stream);
  s.copied_last = false;
  if (use(units_[s.device * engine::kUnits], engine::number(stream))) {
    contend(s.device, {engine::kDown, engine::kUp});
  }
  return submit(s, OpKind::kKernel, value, not_before);
}

inline OpIndex Engine::copy(StreamId stream, CopyKind direction, std::int64_t bytes,
                            Time not_before) {
  engine::require(bytes >= 0 && bytes < engine::kMaxBytes, "a copy must have 0 to 9e15 bytes");
  engine::require(direction != CopyKind::kDeviceToDevice, "a copy within a device is a kernel");
  engine::require(direction != CopyKind::kPeer,
                  "a copy between devices says its source: peer_copy()");
  const bool down = direction == CopyKind::kDeviceToHost;
  Stream& s = stream_of(stream);
  s.copied_last = true;
  if (use(units_[s.device * engine::kUnits + (down ? engine::kDown : engine::kUp)],
          engine::number(stream))) {
    contend(s.device, {engine::kKernel});
  }
  return submit(s, down ? OpKind::kDeviceToHost : OpKind::kHostToDevice, bytes, not_before);
}

inline Signal Engine::record(StreamId stream, Time not_before) {
  if (!signals_.has_room()) return record_in_new_block(stream, not_before);
  Stream& s = stream_of(stream);
  const std::uint32_t id = signals_.make(s.copied_last);
  submit(s, OpKind::kRecord, id, not_before);
  return Signal{id};
}

inline OpIndex Engine::wait(StreamId stream, Signal signal, Time not_before) {
  const auto id = static_cast<std::uint32_t>(signal);
  engine::require(id < signals_.size(), "no such signal");
  Stream& s = stream_of(stream);
  signals_.add_user(id);
  return submit(s, OpKind::kWait, id, not_before);
}

}  // namespace ferry::sim
