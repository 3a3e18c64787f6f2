// Operators that run again together or not at all: one that writes in place, and all from the one
// that made what it writes.
//
//     0  mm          makes a  ┐ 0 and 1 are one: a replay that began between them would write
//     1  add_ a      in place ┘ what it did not make
//     2  gelu
//
// What writes from outside the forward, or too far from what made it, does not run again.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/program.h"
#include "formats/spans.h"

namespace ferry::plan {

struct SpanGroups {
  std::vector<std::uint32_t> group;  // by operator, counting up
  std::vector<bool> writes_outside;  // by operator: it writes what its group did not make
  std::vector<bool> lost;            // by operator: what it makes is written outside its group
  std::vector<bool> reads_written;   // by operator: it reads, from outside, what another writes
};

// `ranges`: of the program's forward, which calls no other code.
SpanGroups span_groups(const Program& program, const std::vector<OperatorRange>& ranges);

}  // namespace ferry::plan
