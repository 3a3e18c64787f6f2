// Works out how often each op of a program runs by the rules of nesting
// (shared/checkpoint/checkpointer.h), whatever the order of the derivatives. It takes the text of
// the program, and the tensors that each backward needs where nothing is recomputed (needs.h).
//
// For each segment it lists what matters, in order: ops, packs, segments. A segment is run again
// once in each graph task in which a tensor that it recomputes is needed: by a node, or as the
// input of a segment in it that runs again. It then runs up to the last tensor that it recomputes,
// or to its end; the segments that it meets run as in forward, but that all which they save is to
// be made again.
//
// Not modelled: reentrant segments, backwards inside forward, failures, segments that bodies call
// or that are called where hooks are excluded.
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
  OpCounts ops;  // the runs of each
  std::int64_t segments = 0;
  std::int64_t recomputes = 0;
  std::int64_t stopped_early = 0;
  bool packs_known = true;  // every node of the program is made
  std::int64_t saved = 0;   // packs in segments, by what is chosen for them
  std::int64_t kept = 0;
  std::int64_t passed_on = 0;
  std::int64_t refused = 0;  // calls of main whose backward asks for a kept output that was written
};

// `plan` says what each call of main keeps; null: nothing is planned. `kept`: the ops whose outputs
// every segment keeps.
RecomputeCounts expected_counts(const Program& program, const SegmentPlan* plan,
                                const std::set<std::string>& kept = {});

// The ops of the program's forward, by name, of which an output is written after them.
std::set<std::string> written_later(const Program& program);

// Compares the core's statistics; empty where they are right.
std::string miscounted(const RecomputeCounts& expected, const CheckpointStatistics& counted);
// Names an op that ran more or less often than expected; empty where there is none.
std::string miscounted(const OpCounts& expected, const OpCounts& counted);

}  // namespace ferry::verify
