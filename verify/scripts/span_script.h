// A script for one span of operators: it runs operators that make, overwrite, fill and view
// storages in all the ways that a span must tell apart, saves tensors among them, and then unpacks
// and drops what was saved, in several graph tasks and threads. After each step, what came back,
// what was refused, and what is alive must be as verify/oracles/span_results.h says; and what
// came back has the contents that were saved.
#pragma once

#include <optional>

#include "formats/stream_op.h"
#include "shared/seam/rules.h"
#include "verify/oracles/verdict.h"
#include "verify/programs/uses.h"

namespace ferry::verify {

// `watch` is told of its operations; null: nobody is.
std::optional<Verdict> try_span_script(const DrawnUses& uses, const Rules& rules,
                                       StreamOpConsumer* watch = nullptr);

}  // namespace ferry::verify
