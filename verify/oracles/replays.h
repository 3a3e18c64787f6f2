// Counts the calls that spans of operators must run again, from what a run without replays shows:
// which storages each op read, wrote and made, and in which graph task each saved tensor is needed.
//
// A span makes again what ops made in it, on its stream and in its task. The first such tensor that
// a task needs brings back all that are alive, and each later one that was not among them comes
// alone. Only those ops run again of which the tensors are made. What these read from outside the
// span is saved when the span ends, and may be what a span around makes. What comes back is a
// tensor of its own, which no span made.
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
  std::int64_t kernels = 0;  // that run where nothing runs again
  std::int64_t again = 0;    // that spans add to these
  SpanCounts spans;
};

// `spans`: those of a plan; beside them the program's calls may be spans.
ReplayCounts expected_replays(const Program& program, const std::vector<PlanSpan>& spans,
                              std::shared_ptr<const sim::Prepared> prepared = nullptr);

}  // namespace ferry::verify
