// Judges the stream log of any program (formats/TRACE.md) with the checkers that judge a
// simulation: happens-before, over devices, host memory and host threads, and lifetimes.
//
// A log may begin when memory is in use already, so that bytes which it never allocated may be used
// and freed; what lies half inside an allocation of its own is reported.
//
// Every line is read, judged and dropped. Memory grows with what the program has at a time: bytes
// that differ, streams, names. Events, tokens and host functions of which every host thread knows
// already say nothing any more; they are dropped when there are many, as are names that nothing
// remembers.
#pragma once

#include <cstdint>
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

struct TraceReport {
  std::uint64_t lines = 0;
  std::vector<TraceViolation> violations;  // by line, then by previous line
};

// Throws InputError where a line is malformed. `leaks`: what is allocated at the end is one.
TraceReport check_trace(LineSource& lines, bool leaks = false);

}  // namespace ferry::check
