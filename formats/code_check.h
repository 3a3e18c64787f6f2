// Checks one code of a program, statement by statement, either as it runs in forward or as a
// checkpoint recomputes it (program_check.h lists the rules).
//
// The result is a summary for the callers of the code, so each code is read only once. The check
// asks for the summaries of the codes that it calls.
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
  // The location of a tensor's bytes: a storage of known size (`bytes`), the storage of an argument
  // of the code (`argument`), or a storage of unknown size (neither is set).
  struct TensorBytes {
    std::optional<std::int64_t> bytes;
    std::optional<std::size_t> argument;
  };

  std::optional<TensorBytes> tensor;
  bool edge = false;
  bool freed = false;
  bool live() const { return !freed && (tensor || edge); }
};

// The facts that a call of a segment needs: the demands on its arguments, and its results.
struct CodeSummary {
  std::size_t depth = 1;                  // nesting of calls, this code included
  std::vector<bool> needs_tensor;         // by argument
  std::vector<std::int64_t> needs_bytes;  // by argument: the furthest byte that a view reaches
  std::vector<SlotState> results;
};

// Returns the summary of a code. `line` is the line of the call that needs it.
using SummaryOf = std::function<const CodeSummary&(CodeId code, std::uint32_t line)>;

// Throws InputError if the code contradicts itself.
CodeSummary check_code(const ProgramLookup& lookup, const Code& code, bool recomputing,
                       const SummaryOf& summary_of);

}  // namespace ferry
