// A run spec as one line of text, which a report prints and `ferry verify --replay` reads.
//
//   consume.drop~AQEB...~3:1,17:2    who, the trial, and the deviations where there are some
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

std::string to_line(const RunSpec& spec);
// Returns the scheduler of that name, which outlives the spec; null where there is none.
using FindScheduler = std::function<const HuntedScheduler*(std::string_view name)>;
// Who may be tried by a line.
struct Known {
  const CoreTrials* core = nullptr;  // the core and its mutants; null: none of these
  FindScheduler find = nullptr;      // schedulers; null: none
};
// Throws InputError.
RunSpec parse_line(std::string_view line, const Known& known);

// Writes a mutant's name as one word ("consume.drop", "rule.keep-source") and finds it again.
// "core" and "pipeline" are Ferry itself. Returns none where there is no such mutant.
std::string word_of(const Mutant& mutant);
std::optional<Mutant> find_mutant(std::string_view word);

}  // namespace ferry::verify
