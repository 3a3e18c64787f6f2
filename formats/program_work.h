// Computes the work and the nesting of a program's codes. Each call counts as often as it runs, so
// the cost of forty segments that each call the next one twice is known before they run.
//
// The work of a code is the number of slots that its statements name, plus one for each statement,
// plus the work of the codes that it calls (twice if the call is recomputed) and of the bodies of
// its nodes, plus a part of the slots of its frame, which must be allocated. A body that makes
// nodes with itself as body counts once. So the work is at least that of the forward and of one
// backward. More backwards through the same graph are counted when they run (sim/program/tape.h).
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "formats/program_lookup.h"

namespace ferry {

// Returns the work of the code's frame and of its own statements, without the codes that they run.
std::int64_t own_work(const Program& program, CodeId code);

// Throws InputError with the line of the statement that exceeds a limit. The program must have
// passed the other checks.
void check_work(const ProgramLookup& lookup);

}  // namespace ferry
