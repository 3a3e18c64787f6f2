// The script of a trial that has one instead of a step: what an engine of its own does with one
// segment, one span, one reentrant region, or what one selective checkpoint keeps.
#pragma once

#include <optional>

#include "formats/stream_op.h"
#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/uses.h"

namespace ferry::verify {

// It has steps. `watch` is told of its operations; null: nobody is.
std::optional<Verdict> try_script(const DrawnUses& uses, const Rules& rules,
                                  StreamOpConsumer* watch);

}  // namespace ferry::verify
