// Options and statistics of checkpointed functions. The options are those of
// torch.utils.checkpoint, with its defaults. A SegmentPlan is the part of a plan that concerns one
// segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/options.h"

namespace ferry {

// Says if it is an error when a recompute saves other tensors than forward did. The check compares
// shapes, dtypes and devices, not values.
enum class DeterminismCheck : std::uint8_t { kDefault, kNone };

// The fate of a tensor that is saved inside a checkpointed function. kKeep leaves it on the device.
// kOffload gives it to the hooks around the checkpoint, as if there were no checkpoint.
enum class SavedChoice : std::uint8_t { kRecompute, kKeep, kOffload };

// A guard of the user that lives while the function runs.
using CheckpointScope = std::shared_ptr<void>;
struct CheckpointContexts {
  std::function<CheckpointScope()> forward;    // called once, before forward
  std::function<CheckpointScope()> recompute;  // called for every recompute
};

// The plan for one segment, which is one call of checkpoint, and for the segments inside it.
struct SegmentPlan {
  // Returns a plan under which only the calls in `segments` are checkpoints. The list starts empty.
  static SegmentPlan closed(bool checkpoint = true) {
    SegmentPlan plan;
    plan.checkpoint = checkpoint;
    plan.unlisted = false;
    return plan;
  }

  bool checkpoint = true;            // if false: the function runs without a checkpoint
  std::vector<SavedChoice> choices;  // for each pack of the segment; past the end: recompute
  std::vector<SegmentPlan> segments;
  std::optional<std::size_t> packs;  // how many packs the segment must have
  bool unlisted = true;              // if true: calls that `segments` does not list are checkpoints
};

struct CoreCheckpointOptions {
  // A recompute stops when it has made everything that forward saved.
  bool early_stop = true;
  // A recompute gets the random numbers of forward.
  bool preserve_rng_state = true;
  DeterminismCheck determinism_check = DeterminismCheck::kDefault;
  // Log every op, so that an error can name the first op that differs.
  bool debug = false;
  // Called once for each checkpoint, before anything else runs.
  std::function<CheckpointContexts()> context_fn;
  // The choice for each pack in the function, by its ordinal, counting every pack. Packs past the
  // end are recomputed. A plan in force overrides this list.
  std::vector<SavedChoice> choices;
};

struct CheckpointStatistics {
  std::int64_t segments = 0;    // checkpointed calls, including those that recomputes made
  std::int64_t recomputes = 0;  // of all segments
  std::int64_t stopped_early = 0;
  std::int64_t saved = 0;      // tensors that backward recomputes
  std::int64_t kept = 0;       // tensors that a segment kept by choice
  std::int64_t passed_on = 0;  // tensors that a segment gave to the hooks around it by choice
  std::int64_t alive = 0;      // segments that a graph still refers to
};

}  // namespace ferry
