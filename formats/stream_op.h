// One stream operation: one plain struct, and one line of the stream log.
//
// A simulation, a real run and a foreign log are all streams of these, in the order in which host
// code issued them. Timing, happens-before and values are consumers of that stream of operations.
// The semantics are CUDA's (runtime guide, "Streams", "Events") and PyTorch's caching allocator's.
//
// Addresses are numbers in one flat space: every device's memory and the host's pinned memory have
// ranges that do not meet. The spans and the name are valid only while a consumer looks at them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shared/step.h"

namespace ferry {

enum class StreamId : std::uint32_t {};
enum class EventId : std::uint32_t {};

enum class StreamOpKind : std::uint8_t {
  kKernel,      // reads `reads`, writes `writes`
  kCopy,        // reads `reads`, writes `writes`, on a copy engine
  kRecord,      // `event` := what `stream` was given so far; replaces an earlier record
  kWait,        // `stream` waits for `event`'s latest record; never recorded: a no-op
  kEventSync,   // the host waits for `event`
  kStreamSync,  // the host waits for `stream`
  kAlloc,       // `range` is handed out, for use on `stream`
  kFree,        // `range` goes back to its pool; orders nothing
  kRecordUse,   // PyTorch's record_stream: `range` is in use on `stream` too
  kHostRead,
  kHostWrite,
};

// kPeer: from one device to another. kDeviceToDevice: within one.
enum class CopyKind : std::uint8_t { kDeviceToHost, kHostToDevice, kDeviceToDevice, kPeer };

// The half-open byte range [address, address + bytes).
struct Range {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end() const { return address + bytes; }
  bool operator==(const Range&) const = default;
};

struct StreamOp {
  StreamOpKind kind = StreamOpKind::kKernel;
  CopyKind copy = CopyKind::kDeviceToDevice;
  Step step = Step::kUser;  // which step of the core issued it; kUser: the program itself
  StreamId stream{};
  EventId event{};
  Range range;
  std::span<const Range> reads;
  std::span<const Range> writes;
  std::string_view name;
  std::uint64_t tag = 0;  // identifies what a kernel computes: equal tags and inputs, equal values
};

}  // namespace ferry
