// Judges the stream log of any program (formats/TRACE.md) with the checkers that judge a
// simulation: happens-before, over devices, host memory and host threads, and lifetimes.
//
// A log may begin when memory is in use already, so that bytes which it never allocated may be used
// and freed; what lies half inside an allocation of its own is reported.
//
// Every line is read, judged and dropped. Memory grows with the program's live resources, and with
// the work that some host thread has not waited for. Accesses, events, tokens and host functions
// that every host thread knows of can be in no report any more (clocks.h calls them settled); when
// there are many they are dropped, with their unused names. A free forgets nothing: a new use of
// bytes is compared with the old ones, however long ago. What cannot be forgotten is counted, with
// the host thread that does not wait. Each kind of checker reports its first 10,000 mistakes and
// counts the others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/line_source.h"
#include "sim/check/hazard.h"

namespace ferry::check {

// One mistake. Lines count from 1; 0: no line (for a leak's end, or an allocation's overrun).
struct TraceViolation {
  HazardKind kind = HazardKind::kReadAfterWrite;
  std::string buffer;  // the buffer's name, if it has one
  Range range;         // else its bytes; both empty for a destroyed stream
  std::uint64_t line = 0;
  std::uint64_t previous_line = 0;
  std::uint64_t count = 1;  // how often the same pair of places was seen
  // A host access has a thread instead of a stream.
  bool by_host = false, previous_by_host = false;
  std::string stream, previous_stream;
  std::string operation, previous_operation;  // as the log names them, with their places
  std::string message;                        // names both accesses and the missing edge
  std::string fix;                            // the calls that would add it
};

// Memory that the host was given to use without a word in the log, while work on it was pending: so
// whether that is in a safe order is not known. Views of one place, and work of one, are one.
struct TraceUnjudged {
  std::uint64_t view_line = 0;
  std::string view;  // as the log names it, with its place
  std::uint64_t line = 0;
  std::string operation;
  std::uint64_t count = 1;  // of views
  std::string message;
};

// The size of the log that a verdict covers. A count that is not exact is a lower bound.
struct TraceScope {
  struct Count {
    std::uint64_t count = 0;
    bool exact = true;
  };
  std::uint64_t operations = 0;
  std::uint64_t accesses = 0;  // accesses to memory, allocations and frees; 0: nothing to judge
  Count streams, threads, buffers;
};

// Work that was remembered to the end because one host thread alone did not wait for it.
struct TracePin {
  std::string thread;  // "": the default thread
  std::uint64_t accesses = 0;
  std::string stream;  // the stream that most of it is on
  std::uint64_t on_stream = 0;
};

struct TraceReport {
  std::uint64_t lines = 0;
  bool stopped = false;  // more lines may follow, so the log's end is not judged
  TraceScope scope;
  std::vector<TraceViolation> violations;  // sorted by line, then by previous line
  std::uint64_t left_out = 0;              // violations that are counted only
  std::uint64_t views = 0;                 // given to the host (views.h)
  std::uint64_t unjudged_views = 0;
  std::vector<TraceUnjudged> unjudged;  // the first of them, sorted by the work's line
  std::uint64_t remembered = 0;         // accesses remembered at the end
  std::vector<TracePin> pins;           // largest first
};

struct TraceOptions {
  bool leaks = false;  // memory still allocated at the end is a mistake
  // The number of remembered items that triggers forgetting; no verdict depends on it.
  std::size_t many = 4096;
  // Called before each line, with the number of lines judged: true ends the check there.
  std::function<bool(std::uint64_t judged)> stop = nullptr;
};

// Throws InputError if a line is malformed, or exceeds the limits of formats/TRACE.md.
TraceReport check_trace(LineSource& lines, const TraceOptions& options);
inline TraceReport check_trace(LineSource& lines, bool leaks = false) {
  return check_trace(lines, TraceOptions{.leaks = leaks});
}

}  // namespace ferry::check
