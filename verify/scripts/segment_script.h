// A script for one segment: a function that saves some tensors on several streams, and what an
// engine of its own does with them. In drawn places, some of them in forward, it unpacks and drops
// them, in several graph tasks, threads and groups of backwards; recomputes deviate from forward as
// drawn. After each step, what came back, what was refused, and what is alive must be as
// verify/oracles/segment_results.h says.
#pragma once

#include <optional>

#include "formats/stream_op.h"
#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/uses.h"

namespace ferry::verify {

// `watch` is told of its operations; null: nobody is.
std::optional<Verdict> try_segment_script(const DrawnUses& uses, const Rules& rules,
                                          StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify
