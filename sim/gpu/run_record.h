// What a device did in the last step of a run, and why it did nothing meanwhile: what pictures of a
// run are drawn from (`ferry report`).
//
// Times are nanoseconds since the step began. Memory is counted when the host asks for it, as
// PyTorch counts, and the host runs far ahead of the device; so each change says which work was
// given next, and memory_at() draws it where the device gets there. The order is the host's, so the
// peak is the one that the pool tells.
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
  MemoryKind before{};              // of kOfOtherKind: what it was
  std::uint32_t place = 0;          // where it was made
  std::int64_t bytes = 0;           // of its block
  std::int64_t reserved_bytes = 0;  // by the pool, then
  std::size_t next = 0;             // the work given next
};

struct RunRecord {
  std::vector<std::string> names;
  std::vector<RecordedWork> work;      // in the order in which it was given
  std::vector<RecordedWait> waits;     // in the order of their ends on each stream
  std::vector<RecordedMemory> memory;  // what the step found comes first, as if allocated
  std::size_t found = 0;               // so many of them
  Time step_ns = 0;
  Time launch_ns = 0;  // the host's time for each of the work
};

// For each change of memory the time at which it is drawn: when the next kernel begins, and at the
// step's end if there is none. Never decreasing.
std::vector<Time> memory_times(const RunRecord& record);

// What was allocated at the peak: when it was last reached, as Machine::kinds_at_peak counts.
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

// Why an engine of the device was idle.
enum class Idle : std::uint8_t {
  kCopyOut,      // its stream waited for a copy to the host
  kCopyIn,       // for a copy from the host
  kOtherStream,  // for a kernel of another stream
  kEarlier,      // for work of an earlier step
  kLaunch,       // the host was launching, and had not got there
  kHostWaited,   // the host had not launched it, for it waited itself: for memory, or a copy
  kNoMoreWork,   // after its last work of the step, while others went on
};
inline constexpr std::size_t kIdles = 7;

struct IdlePart {
  Idle why{};
  Time start = 0;
  Time end = 0;
  std::optional<std::size_t> on;    // the work that was waited for
  std::optional<std::size_t> next;  // the work that came next
};

// All times of the step at which no work of that kind ran, in order. They and the work add up to
// the step.
std::vector<IdlePart> idle_parts(const RunRecord& record, OpKind kind);

// The same for the host, which launches work, one after the other; its parts are all kHostWaited or
// kNoMoreWork.
std::vector<IdlePart> host_idle_parts(const RunRecord& record);

}  // namespace ferry::sim
