// A record of the last step of a run: what a device did, and why it was idle in between. `ferry
// report` draws a run from this.
//
// Times are nanoseconds since the step began. Memory is counted when the host requests it, as in
// PyTorch, and the host runs far ahead of the device. So each change of memory says which work was
// given next, and memory_times() places it where the device gets there. The order is the host's, so
// the peak is the one that the pool reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/stream_op.h"
#include "sim/gpu/engine.h"
#include "sim/gpu/memory_kind.h"

namespace ferry::sim {

// A kernel or a copy.
struct RecordedWork {
  OpKind kind = OpKind::kKernel;
  StreamId stream{};
  std::uint32_t name = 0;   // in RunRecord::names
  std::uint32_t place = 0;  // Machine::place()
  std::int64_t bytes = -1;  // of a copy
  Time issued = 0;
  Time start = 0;
  Time end = 0;
};

// A stream that waited for another one.
struct RecordedWait {
  StreamId stream{};
  std::optional<std::size_t> on;  // the work that it waited for; none: of an earlier step
  Time start = 0;
  Time end = 0;
};

enum class MemoryChange : std::uint8_t { kAllocated, kFreed, kOfOtherKind };

struct RecordedMemory {
  MemoryChange change = MemoryChange::kAllocated;
  MemoryKind kind{};
  MemoryKind before{};              // for kOfOtherKind: the old kind
  std::uint32_t place = 0;          // Machine::place() when it was made
  std::int64_t bytes = 0;           // of its block
  std::int64_t reserved_bytes = 0;  // by the pool at that time
  std::size_t next = 0;             // index of the work given next
};

struct RunRecord {
  std::vector<std::string> names;
  std::vector<RecordedWork> work;      // in the order in which it was given
  std::vector<RecordedWait> waits;     // in the order of their ends on each stream
  std::vector<RecordedMemory> memory;  // memory from before the step comes first, as if allocated
  std::size_t found = 0;               // number of those
  Time step_ns = 0;
  Time launch_ns = 0;  // the host's time for each launch
};

// Returns, for each change of memory, the time at which it is drawn: when the next kernel begins
// or, without one, at the end of the step. Never decreasing.
std::vector<Time> memory_times(const RunRecord& record);

// The memory that was allocated when the peak was last reached, as Machine::kinds_at_peak counts.
struct RecordedPeak {
  Time at = 0;
  KindBytes kinds;
  struct Part {
    std::uint32_t place = 0;
    MemoryKind kind{};
    std::int64_t bytes = 0;
  };
  std::vector<Part> parts;  // by place, then kind; none is empty
};
RecordedPeak peak_of(const RunRecord& record);

// The reason why an engine of the device was idle.
enum class Idle : std::uint8_t {
  kCopyOut,      // its stream waited for a copy to the host
  kCopyIn,       // it waited for a copy from the host
  kOtherStream,  // it waited for a kernel of another stream
  kEarlier,      // it waited for work of an earlier step
  kLaunch,       // the host was still launching earlier work
  kHostWaited,   // the host had not launched it, because it waited itself: for memory, or a copy
  kNoMoreWork,   // its work of the step is done, while others go on
};
inline constexpr std::size_t kIdles = 7;

struct IdlePart {
  Idle why{};
  Time start = 0;
  Time end = 0;
  std::optional<std::size_t> on;    // the work that was waited for
  std::optional<std::size_t> next;  // the work that came next
};

// Returns all times of the step in which no work of that kind ran, in order. They and the work add
// up to the step.
std::vector<IdlePart> idle_parts(const RunRecord& record, OpKind kind);

// The same for the host, which launches one work after the other. All its parts are kHostWaited or
// kNoMoreWork.
std::vector<IdlePart> host_idle_parts(const RunRecord& record);

}  // namespace ferry::sim
