// Checks one code of a program, statement after statement, as it runs first or as it runs again
// (program_check.h says what for).
//
// What its calls must know comes back as a summary, so each code is read once, however often it is
// called; it asks for the summaries of the codes that it calls itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "formats/program.h"
#include "formats/program_lookup.h"

namespace ferry {

struct SlotState {
  // Where a tensor's bytes are: in a storage of known size, in whatever the caller passed as
  // argument, or in one of unknown size.
  struct Place {
    std::optional<std::int64_t> bytes;
    std::optional<std::size_t> argument;
  };

  std::optional<Place> tensor;
  bool edge = false;
  bool freed = false;
  bool live() const { return !freed && (tensor || edge); }
};

// What a call of a segment must know: what its arguments must be, and what its results are.
struct CodeSummary {
  std::size_t depth = 1;                  // of calls in calls, with this one
  std::vector<bool> needs_tensor;         // by argument
  std::vector<std::int64_t> needs_bytes;  // by argument: the furthest byte that a view reaches
  std::vector<SlotState> results;
};

// `line` is that of the call which wants it.
using SummaryOf = std::function<const CodeSummary&(CodeId code, std::uint32_t line)>;

// Throws InputError.
CodeSummary check_code(const ProgramLookup& lookup, const Code& code, bool recomputing,
                       const SummaryOf& summary_of);

}  // namespace ferry
