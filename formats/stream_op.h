// A stream operation: a plain struct that corresponds to one line of the stream log.
//
// A simulation, a real run and a foreign log are all sequences of these operations, in the order in
// which host code issued them. Timing, happens-before and values are consumers of the sequence. The
// semantics are those of CUDA (runtime guide, "Streams", "Events") and of PyTorch's caching
// allocator.
//
// The simulator issues only the kinds down to kHostWrite, from one host thread; a foreign log
// (formats/stream_log.h) can have all kinds. Operations through which threads affect each other
// (records and waits, work on the same stream) took effect in the order of the sequence.
//
// Addresses are numbers in one flat space: the memory of each device and the host's pinned memory
// have ranges that do not overlap. The spans and the name are valid only while a consumer runs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "shared/seam/step.h"

namespace ferry {

enum class StreamId : std::uint32_t {};
enum class EventId : std::uint32_t {};
enum class HostThread : std::uint32_t {};  // 0 is the default thread, which always exists
enum class HostToken : std::uint32_t {};   // pairs a host release with its acquires
enum class GraphId : std::uint32_t {};     // a CUDA graph; 0 is none

enum class StreamOpKind : std::uint8_t {
  kKernel,      // reads `reads`, writes `writes`
  kCopy,        // reads `reads`, writes `writes`, on a copy engine
  kRecord,      // `event` := the work of `stream` so far; replaces an earlier record
  kWait,        // `stream` waits for `event`'s latest record; does nothing without a record
  kEventSync,   // the host waits for `event`
  kStreamSync,  // the host waits for `stream`
  kAlloc,       // `range` is allocated for use on `stream`
  kFree,        // `range` returns to its pool; orders nothing
  kRecordUse,   // PyTorch's record_stream: `range` is also used on `stream`, or until `event`
  kHostRead,
  kHostWrite,
  kMemset,    // writes `writes`
  kHostFunc,  // reads `reads`, writes `writes`, on the host but in the stream's order
  kDeviceSync,
  kRelease,  // the work of the thread, or of the stream, so far comes before all that follows …
  kAcquire,  // … an acquire of the same token
  kStream,   // `stream` is created, with its kind and device
  kStreamDestroy,
  kEventDestroy,  // the record of `event` is gone
  kHostView,      // from here on the host may use `range` without more operations in the log …
  kHostViewEnd,   // … until each such view has ended
};

// kPeer is a copy from one device to another, kDeviceToDevice one within a device.
enum class CopyKind : std::uint8_t { kDeviceToHost, kHostToDevice, kDeviceToDevice, kPeer };

// How a stream is related to the legacy default stream of its device, which waits for all blocking
// streams and makes them wait.
enum class StreamKind : std::uint8_t { kNonblocking, kBlocking, kLegacy };

// The allocator of a range. kCaching and kAsync reuse bytes at once, in the order of their stream.
// kHost is page-locked or pageable host memory. kMalloc: cudaFree waits for the device.
enum class PoolKind : std::uint8_t { kCaching, kAsync, kHost, kMalloc };

// How the host waits in a copy or memset. kStaged: it waits for the stream's earlier work and until
// the source was read (cudaMemcpy from pageable memory to a device). kDone: it waits until the
// operation is done.
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
  bool until_event = false;  // kRecordUse: only until the work that `event` has recorded by now
  std::uint32_t device = 0;  // for kStream and kDeviceSync
  StreamKind stream_kind = StreamKind::kNonblocking;
  HostOrder host_order = HostOrder::kNone;
  std::uint64_t tag = 0;  // identifies what a kernel computes: equal tags and inputs, equal values
  // CUDA graphs. In a capture, work is kept as nodes and does not run: such an operation is
  // `captured`. Each replay issues the nodes' operations again, in the same order. An allocation
  // during the capture has the `graph` too. An allocation in a pool that graphs may use, during a
  // capture or not, has that pool; graphs may share one.
  GraphId graph{};
  std::uint32_t graph_pool = 0;  // kAlloc; 0 is none
  std::uint32_t node = 0;        // number in the graph, from 0
  bool captured = false;
};

// Receives the operations of a run, one by one, in the order in which the host issued them. An
// operation's spans and name are valid only during the call.
class StreamOpConsumer {
 public:
  virtual ~StreamOpConsumer() = default;
  virtual void operator()(const StreamOp& op) = 0;
};

}  // namespace ferry
