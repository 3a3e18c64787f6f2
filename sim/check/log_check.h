// Judges the stream log of any program (formats/STREAM_LOG.md) with the checkers that judge a
// simulation: happens-before (over devices, host memory and host threads), lifetimes and liveness.
//
// A log may begin when memory is already in use. So ops may use and free bytes that the log never
// allocated. But a range that lies only partly in an allocation of the log is reported.
//
// Each line is read, judged and dropped. Memory grows with the live resources of the program, and
// with the work that some host thread has not waited for. No later report can name accesses,
// events, tokens and host functions that every host thread knows as done (clocks.h calls them
// settled). When there are many, they are dropped, with their unused names. A free forgets nothing:
// a new use of bytes is compared with the old ones, however long ago they were. What cannot be
// forgotten is counted, with the host thread that does not wait. Each checker reports its first
// 10,000 mistakes and counts the others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/line_source.h"
#include "formats/stream_op.h"
#include "sim/check/hazard.h"

namespace ferry::check {

// One mistake. Lines count from 1. `previous_line` is 0 if there is no earlier access (a leak, or a
// token that nobody releases).
struct LogViolation {
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
  std::string message;                        // names both accesses and what is wrong
  std::string fix;                            // the calls that would correct it
};

// A view: memory that the host may use without further entries in the log. Work on it was pending
// during the view, so the log does not show if the order is safe. All views of one place with work
// of one place are one entry.
struct TraceUnjudged {
  std::uint64_t view_line = 0;
  std::string view;  // as the log names it, with its place
  std::uint64_t line = 0;
  std::string operation;
  std::uint64_t count = 1;  // number of such views
  std::string message;
};

// The size of the log that a verdict covers. A count that is not exact is a lower bound.
struct LogScope {
  struct Count {
    std::uint64_t count = 0;
    bool exact = true;
  };
  std::uint64_t operations = 0;
  std::uint64_t accesses = 0;  // accesses to memory, allocations and frees; 0: nothing to judge
  Count streams, threads, buffers;
};

// Accesses that stayed remembered to the end because exactly one host thread did not wait for them.
struct TracePin {
  std::string thread;  // "": the default thread
  std::uint64_t accesses = 0;
  std::string stream;  // the stream of most of them
  std::uint64_t on_stream = 0;
};

struct LogReport {
  std::uint64_t lines = 0;
  bool stopped = false;  // more lines may follow, so the log's end is not judged
  LogScope scope;
  std::vector<LogViolation> violations;  // sorted by line, then by previous line
  std::uint64_t left_out = 0;            // violations that are only counted
  std::uint64_t views = 0;               // given to the host (views.h)
  std::uint64_t unjudged_views = 0;
  std::vector<TraceUnjudged> unjudged;  // the first of them, sorted by the work's line
  std::uint64_t remembered = 0;         // accesses remembered at the end
  std::vector<TracePin> pins;           // most accesses first
};

struct LogOptions {
  bool leaks = false;  // report memory that is still allocated at the end
  // Forget what is settled if more items than this are remembered. No verdict depends on it.
  std::size_t many = 4096;
  // Called before each line, with the number of lines judged so far. If it returns true, the check
  // ends there.
  std::function<bool(std::uint64_t judged)> stop = nullptr;
  // Receives each operation before it is judged, so that a log is read once. May be null.
  StreamOpConsumer* also = nullptr;
};

// Throws InputError if a line is malformed, or exceeds the limits of formats/STREAM_LOG.md.
LogReport check_log(LineSource& lines, const LogOptions& options);
inline LogReport check_log(LineSource& lines, bool leaks = false) {
  return check_log(lines, LogOptions{.leaks = leaks});
}

}  // namespace ferry::check
