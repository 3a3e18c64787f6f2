// Works out how often each op of a program runs by the rules of nested checkpoints
// (shared/checkpoint/checkpointer.h), for any order of derivatives. Its input is the text of the
// program, and the tensors that each backward needs if nothing is recomputed (needs.h).
//
// try_core.cpp compares the kernels of a run and the core's statistics with the result. So a
// recompute that is missing or needless is found.
//
// For each segment it lists ops, packs and inner segments in order. A segment is recomputed once in
// each graph task that needs a tensor which the segment recomputes. A node may need the tensor, or
// it may be the input of an inner segment that is recomputed. The recompute runs up to the last
// tensor that the segment recomputes, or to its end. Inner segments then run as in forward, but
// everything they save must be made again.
//
// Not modelled: reentrant segments, backwards inside forward, failures, segments that bodies call,
// and segments that are called where hooks are excluded.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "formats/program.h"
#include "shared/seam/checkpoint_options.h"
#include "sim/gpu/machine.h"

namespace ferry::verify {

using OpCounts = std::map<std::string, std::int64_t>;

// Counts the runs of kernels by name.
class OpCounter final : public StreamOpConsumer {
 public:
  void operator()(const StreamOp& op) override {
    if (op.kind == StreamOpKind::kKernel) ++counts[std::string(op.name)];
  }
  OpCounts counts;
};

struct RecomputeCounts {
  OpCounts ops;  // runs of each op
  std::int64_t segments = 0;
  std::int64_t recomputes = 0;
  std::int64_t stopped_early = 0;
  bool packs_known = true;  // every node of the program is made
  std::int64_t saved = 0;   // packs in segments, by the choice for them
  std::int64_t kept = 0;
  std::int64_t passed_on = 0;
  std::int64_t refused = 0;  // calls of main whose backward needs a kept output that was written
};

// `plan` says what each call of main keeps; null: there is no plan. `kept` names the ops whose
// outputs every segment keeps.
RecomputeCounts expected_counts(const Program& program, const SegmentPlan* plan,
                                const std::set<std::string>& kept = {});

// Returns the names of the ops, of any code, that have an output which a later op of that code
// writes. Writes through views do not count.
std::set<std::string> written_later(const Program& program);

// Compares with the core's statistics. Describes the first difference, or returns an empty text.
std::string miscounted(const RecomputeCounts& expected, const CheckpointStatistics& counted);
// Names an op that ran more or less often than expected, or returns an empty text.
std::string miscounted(const OpCounts& expected, const OpCounts& counted);

}  // namespace ferry::verify
