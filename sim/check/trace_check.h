// Judges the stream log of any program (formats/TRACE.md) with the checkers that judge a
// simulation: happens-before, over devices, host memory and host threads, and lifetimes.
//
// A log may begin when memory is in use already, so that bytes which it never allocated may be used
// and freed; what lies half inside an allocation of its own is reported.
//
// Every line is read, judged and dropped. Memory grows with what the program has at a time, and
// with what some host thread has not waited for. Accesses, events, tokens and host functions of
// which every host thread knows already can be in no report any more (clocks.h: they are settled);
// when there are many they are dropped, and with them the names that nothing remembers. A free
// forgets nothing: who uses bytes again is compared with who used them before, however long ago.
// What cannot be forgotten is counted, with the host thread that does not wait. Of mistakes the
// first 10,000 of each kind of checker are told, and the others counted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/line_source.h"
#include "sim/check/hazard.h"

namespace ferry::check {

// One mistake. Lines count from 1; 0: there is none (the leak's end, the overrun of an allocation).
struct TraceViolation {
  HazardKind kind = HazardKind::kReadAfterWrite;
  std::string buffer;  // its name, where it has one
  Range range;         // else its bytes; none of either for a destroyed stream
  std::uint64_t line = 0;
  std::uint64_t previous_line = 0;
  std::uint64_t count = 1;  // how often the same pair of places was seen
  // A host access has a thread instead of a stream.
  bool by_host = false, previous_by_host = false;
  std::string stream, previous_stream;
  std::string message;  // both accesses and the edge that is missing
  std::string fix;      // what would add it
};

// What a verdict is about. A count that is not exact is a least one.
struct TraceScope {
  struct Count {
    std::uint64_t count = 0;
    bool exact = true;
  };
  std::uint64_t operations = 0;
  std::uint64_t accesses = 0;  // of memory, with allocations and frees; 0: nothing to judge
  Count streams, threads, buffers;
};

// What had to be remembered, to the end, for a host thread alone did not wait for it.
struct TracePin {
  std::string thread;  // "": the default one
  std::uint64_t accesses = 0;
  std::string stream;  // on which most of them are
  std::uint64_t on_stream = 0;
};

struct TraceReport {
  std::uint64_t lines = 0;
  bool stopped = false;  // there may be more lines, and nothing is said about the log's end
  TraceScope scope;
  std::vector<TraceViolation> violations;  // by line, then by previous line
  std::uint64_t left_out = 0;              // violations that are only counted
  std::uint64_t remembered = 0;            // accesses at the end
  std::vector<TracePin> pins;              // most first
};

struct TraceOptions {
  bool leaks = false;  // what is allocated at the end is a mistake
  // How much is remembered before anybody looks what may be forgotten; no verdict depends on it.
  std::size_t many = 4096;
  // Asked before each line, with the number of those judged: true ends the check before it.
  std::function<bool(std::uint64_t judged)> stop = nullptr;
};

// Throws InputError where a line is malformed, or needs more than formats/TRACE.md allows.
TraceReport check_trace(LineSource& lines, const TraceOptions& options);
inline TraceReport check_trace(LineSource& lines, bool leaks = false) {
  return check_trace(lines, TraceOptions{.leaks = leaks});
}

}  // namespace ferry::check
