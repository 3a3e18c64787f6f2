// Writes a run spec as one line of text and reads it again. Reports print the line, and `ferry
// verify --replay` reads it.
//
//   consume.drop~AQEB...~3:1,17:2
//
// The parts are the name of the mutant or scheduler, the encoded trial (verify/programs/codec.h),
// and the deviations, if there are any, each as PLACE:ANSWER.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "verify/campaign/run_spec.h"

namespace ferry::verify {

std::string to_line(const RunSpec& spec);
// Returns the scheduler with this name, or null if there is none. It must outlive the spec.
using FindScheduler = std::function<const HuntedScheduler*(std::string_view name)>;
// The names that a line may begin with.
struct Known {
  const CoreTrials* core = nullptr;  // runs the core and its mutants; null: the core is not known
  FindScheduler find = nullptr;      // finds schedulers; null: only the core is known
};
// Throws InputError if the line is malformed or its name is unknown.
RunSpec parse_line(std::string_view line, const Known& known);

// A mutant's name as one word, such as "consume.drop" or "rule.keep-source", and its inverse.
// "core" and "pipeline" mean Ferry without a mutant. find_mutant returns nothing for an unknown
// word.
std::string word_of(const Mutant& mutant);
std::optional<Mutant> find_mutant(std::string_view word);

}  // namespace ferry::verify
