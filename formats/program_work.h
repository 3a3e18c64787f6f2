// Computes the work and the nesting of a program's codes, each call counted as often as it runs:
// the cost of forty segments that each call the next one twice is known before they run.
//
// The work of a code is the slots that its statements name, plus one for each statement, plus the
// work of what it calls (twice, where the call is recomputed) and of the bodies of its nodes; and a
// part of its frame's slots, which must be made. A body that makes nodes of its own kind counts
// once. So it is no less than the program's forward does, and its backward where there is one; what
// several backwards through one graph do is counted as it runs (sim/program/tape.h).
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "formats/program_lookup.h"

namespace ferry {

// The work of the code's own statements, without the codes that they run, and of its frame.
std::int64_t own_work(const Program& program, CodeId code);

// Throws InputError with the line of the statement that passes a limit. The program must pass the
// other checks.
void check_work(const ProgramLookup& lookup);

}  // namespace ferry
