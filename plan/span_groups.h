// Groups of operators that are recomputed together or not at all, for span_model.h: an operator
// that writes in place, and all operators back to the one that made the storage it writes to.
//
//     0  mm          makes a  ┐ 0 and 1 are one group: a replay that began between them would
//     1  add_ a      in place ┘ write to a storage that it did not make
//     2  gelu
//
// An operator is not recomputed if it writes to a storage that its group does not make. Either the
// forward did not make the storage, or a group back to its maker is impossible: it would have more
// than 16 operators (kMost), or a place at which no span may continue (joins_next).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/program.h"
#include "formats/spans.h"

namespace ferry::plan {

struct SpanGroups {
  std::vector<std::uint32_t> group;  // by operator: group numbers, ascending
  std::vector<bool> writes_outside;  // by operator: it writes to what its group did not make
  std::vector<bool> lost;            // by operator: another group writes to what it makes
  std::vector<bool> reads_written;   // by operator: it reads an outside storage that is written
};

// `ranges` are the operators of the program's forward. The forward must call no other code.
SpanGroups span_groups(const Program& program, const std::vector<OperatorRange>& ranges);

}  // namespace ferry::plan
