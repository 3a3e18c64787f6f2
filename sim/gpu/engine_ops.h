// What both halves of the engine, submission (engine_submit.h, engine.cpp) and the run
// (engine_run.cpp), share: the kind of a queued operation and the meaning of its value, the limits
// of these values, the numbers of a device's units and of the slots in the event heap, and
// require(), which aborts on a caller's error.
//
// A kernel's value has its ns in the high bits, and below them the share of the memory's rate that
// it needs. A peer copy's value has its source device above its bytes. Another copy's value is its
// bytes, and that of a record or a wait is the signal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "formats/stream_op.h"
#include "sim/gpu/event_queue.h"
#include "sim/gpu/memory_rates.h"
#include "sim/gpu/op_queue.h"
#include "sim/gpu/signal_table.h"

namespace ferry::sim {

using OpIndex = std::uint64_t;

enum class OpKind : std::uint8_t { kKernel, kDeviceToHost, kHostToDevice, kPeer, kRecord, kWait };

namespace engine {

inline constexpr std::uint32_t kUnits = 4;  // engines of a device
inline constexpr std::uint32_t kKernel = 0;
inline constexpr std::uint32_t kDown = 1;            // device to host
inline constexpr std::uint32_t kUp = 2;              // host to device
inline constexpr std::uint32_t kPeer = 3;            // from other devices to this one
inline constexpr std::uint32_t kShared = kNone - 1;  // a Unit's user if it has several
inline constexpr std::int64_t kMaxBytes = EventQueue::kNever / 1000;
inline constexpr int kPeerBytesBits = 48;  // bits of a peer copy's value; its source is above them
inline constexpr std::int64_t kPeerBytes = (std::int64_t{1} << kPeerBytesBits) - 1;
inline constexpr int kKernelNsBits = 50;
// The low bits of a kernel's value, for its share of the memory's rate; the ns are above them.
inline constexpr int kShareBits = 10;
inline constexpr std::int64_t kWhole = MemoryRates::kWhole;
inline constexpr std::uint32_t kMaxDevices = 1u << 15;
inline constexpr std::uint64_t kWakeClass = std::uint64_t{1} << 63;  // after finishes at one time

// Slots of the event heap.
inline std::uint32_t unit_slot(std::uint32_t unit) { return unit * 2; }
inline std::uint32_t stream_slot(std::uint32_t stream) { return stream * 2 + 1; }

inline OpKind kind_of(const QueuedOp& op) {
  return static_cast<OpKind>(op.tag & ((1u << QueuedOp::kKindBits) - 1));
}
inline OpIndex index_of(const QueuedOp& op) { return op.tag >> QueuedOp::kKindBits; }
inline std::uint32_t signal_of(const QueuedOp& op) { return static_cast<std::uint32_t>(op.value); }

inline std::uint32_t number(StreamId stream) { return static_cast<std::uint32_t>(stream); }

inline std::int64_t bytes_of(const QueuedOp& op) {
  if (kind_of(op) != OpKind::kPeer) return op.value;
  return op.value & kPeerBytes;
}
inline Time ns_of(const QueuedOp& kernel) { return kernel.value >> kShareBits; }
inline std::int64_t memory_share_of(const QueuedOp& kernel) {
  return kernel.value & ((std::int64_t{1} << kShareBits) - 1);
}
inline std::uint32_t source_of(const QueuedOp& op) {
  return static_cast<std::uint32_t>(op.value >> kPeerBytesBits);
}

// Returns a copy's size in thousandths of a byte. Even an empty copy takes a nanosecond.
inline std::int64_t thousandths(std::int64_t bytes) {
  return std::max<std::int64_t>(bytes * 1000, 1);
}

inline std::uint32_t other_direction(std::uint32_t unit) {
  return unit % kUnits == kDown ? unit + 1 : unit - 1;
}

[[noreturn, gnu::noinline]] inline void fail(const char* what) {
  std::fprintf(stderr, "ferry::sim::Engine: %s\n", what);
  std::abort();
}

// Aborts unless it holds. For errors of the programmer.
inline void require(bool holds, const char* what) {
  if (!holds) [[unlikely]]
    fail(what);
}

}  // namespace engine
}  // namespace ferry::sim
