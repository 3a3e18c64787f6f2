// A stream operation: one plain struct, and one line of the stream log.
//
// A simulation, a real run and a foreign log are all streams of these, in the order in which host
// code issued them. Timing, happens-before and values are consumers of that stream of operations.
// The semantics are CUDA's (runtime guide, "Streams", "Events") and PyTorch's caching allocator's.
//
// The simulator issues the kinds down to kHostWrite, from one host thread; a foreign log
// (formats/trace.h) has them all. Operations by which several threads meet (records and waits, one
// stream's work) took effect in the order of the stream of operations.
//
// Addresses are numbers in one flat space: every device's memory and the host's pinned memory have
// ranges that do not meet. The spans and the name are valid only while a consumer looks at them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shared/seam/step.h"

namespace ferry {

enum class StreamId : std::uint32_t {};
enum class EventId : std::uint32_t {};
enum class HostThread : std::uint32_t {};  // 0: every program has this one
enum class HostToken : std::uint32_t {};   // pairs a host release with its acquires

enum class StreamOpKind : std::uint8_t {
  kKernel,      // reads `reads`, writes `writes`
  kCopy,        // reads `reads`, writes `writes`, on a copy engine
  kRecord,      // `event` := the work of `stream` so far; replaces an earlier record
  kWait,        // `stream` waits for `event`'s latest record; never recorded: a no-op
  kEventSync,   // the host waits for `event`
  kStreamSync,  // the host waits for `stream`
  kAlloc,       // `range` is handed out, for use on `stream`
  kFree,        // `range` goes back to its pool; orders nothing
  kRecordUse,   // PyTorch's record_stream: `range` is in use on `stream` too; or until `event`
  kHostRead,
  kHostWrite,
  kMemset,    // writes `writes`
  kHostFunc,  // reads `reads`, writes `writes`, on the host but in the stream's order
  kDeviceSync,
  kRelease,  // work of the thread, or stream, so far comes before what follows …
  kAcquire,  // … an acquire of the same token
  kStream,   // `stream` is created, with its kind and device
  kStreamDestroy,
  kEventDestroy,  // `event` was never recorded
  kHostView,      // the host was given `range`, to use without a word …
  kHostViewEnd,   // … until the end of each such view
};

// kPeer: from one device to another. kDeviceToDevice: within one.
enum class CopyKind : std::uint8_t { kDeviceToHost, kHostToDevice, kDeviceToDevice, kPeer };

// The relation of a stream to its device's legacy default stream, which waits for all blocking
// streams and makes them wait.
enum class StreamKind : std::uint8_t { kNonblocking, kBlocking, kLegacy };

// The allocator of a range. kCaching, kAsync: reuses bytes at once, in its stream's order. kHost:
// page-locked or pageable host memory. kMalloc: cudaFree waits for the device.
enum class PoolKind : std::uint8_t { kCaching, kAsync, kHost, kMalloc };

// The host's wait in a copy or memset. kStaged: for the stream's earlier work and until the source
// has been read (cudaMemcpy from pageable memory to a device). kDone: until it is done.
enum class HostOrder : std::uint8_t { kNone, kStaged, kDone };

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
  Step step = Step::kUser;  // the core's step that issued it; kUser: the program itself
  PoolKind pool = PoolKind::kCaching;
  HostThread thread{};
  StreamId stream{};
  EventId event{};
  Range range;
  std::span<const Range> reads;
  std::span<const Range> writes;
  std::string_view name;
  HostToken token{};
  bool in_stream = false;    // kRelease, kAcquire: by a host function in `stream`, not by a thread
  bool until_event = false;  // kRecordUse: until what `event` has recorded by now, and no longer
  std::uint32_t device = 0;  // of kStream and kDeviceSync
  StreamKind stream_kind = StreamKind::kNonblocking;
  HostOrder host_order = HostOrder::kNone;
  std::uint64_t tag = 0;  // identifies what a kernel computes: equal tags and inputs, equal values
};

// Takes the operations of a run, one by one, in the order in which the host issued them. An
// operation's spans and name are valid during the call.
class StreamOpConsumer {
 public:
  virtual ~StreamOpConsumer() = default;
  virtual void operator()(const StreamOp& op) = 0;
};

}  // namespace ferry
