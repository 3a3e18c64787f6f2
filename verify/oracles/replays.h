// Counts the calls that spans of operators must recompute. It makes a run without replays and looks
// at which storages each op read, wrote and made, and in which graph task each saved tensor is
// needed.
//
// A span recomputes what ops made in it, on its stream and in its task. The first such tensor that
// a task needs brings back all that are alive; each later one comes back alone. Only the ops that
// made these tensors are recomputed. Tensors that they read from outside the span are saved when
// the span ends; a span around it may have made them. A tensor that comes back is a new one, which
// no span made.
//
// Not modelled: checkpoints, failures.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/plan.h"
#include "formats/program.h"
#include "sim/program/prepared.h"
#include "verify/oracles/saved_sources.h"

namespace ferry::verify {

struct ReplayCounts {
  std::int64_t kernels = 0;  // kernels of a run that recomputes nothing
  std::int64_t again = 0;    // calls that spans add to these
  SpanCounts spans;
};

// `spans` are the spans of a plan; calls of the program may be spans as well.
ReplayCounts expected_replays(const Program& program, const std::vector<PlanSpan>& spans,
                              std::shared_ptr<const sim::Prepared> prepared = nullptr);

}  // namespace ferry::verify
