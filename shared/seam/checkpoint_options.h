// Options of a checkpointed function, and the statistics that are counted.
//
// The options are torch.utils.checkpoint's, with its defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shared/seam/options.h"

namespace ferry {

// Decides if a recompute that saves other tensors than forward is an error. Shapes, dtypes and
// devices are compared, values are not.
enum class DeterminismCheck : std::uint8_t { kDefault, kNone };

// The fate of a tensor that is saved inside a checkpointed function. Keep: it stays on the device.
// Offload: it goes to the hooks around the checkpoint, as if there were no checkpoint.
enum class SavedChoice : std::uint8_t { kRecompute, kKeep, kOffload };

// A guard of the user's that is alive while the function runs.
using CheckpointScope = std::shared_ptr<void>;
struct CheckpointContexts {
  std::function<CheckpointScope()> forward;    // called once
  std::function<CheckpointScope()> recompute;  // called for every recompute
};

// A plan for one segment (one call of checkpoint), and for those inside it, by ordinal.
struct SegmentPlan {
  // A plan in which only the calls in `segments` are checkpoints; initially none.
  static SegmentPlan closed(bool checkpoint = true) {
    SegmentPlan plan;
    plan.checkpoint = checkpoint;
    plan.unlisted = false;
    return plan;
  }

  bool checkpoint = true;            // false: the function runs without a checkpoint
  std::vector<SavedChoice> choices;  // by ordinal of the pack in the segment; past the end:
                                     // recompute
  std::vector<SegmentPlan> segments;
  std::optional<std::size_t> packs;  // the number of packs that it must save
  bool unlisted = true;              // calls inside beyond `segments` are checkpoints
};

struct CoreCheckpointOptions {
  // Stop a recompute once everything that forward saved exists again.
  bool early_stop = true;
  // Recomputes see the random numbers of forward.
  bool preserve_rng_state = true;
  DeterminismCheck determinism_check = DeterminismCheck::kDefault;
  // Log every op, so that an error names the first that differs.
  bool debug = false;
  // Called once for each checkpoint, before anything else.
  std::function<CheckpointContexts()> context_fn;
  // By ordinal of the pack in the function, counting every pack; past the end: recompute. A plan in
  // force overrides it.
  std::vector<SavedChoice> choices;
};

struct CheckpointStatistics {
  std::int64_t segments = 0;    // checkpointed calls, those made while recomputing included
  std::int64_t recomputes = 0;  // of all segments
  std::int64_t stopped_early = 0;
  std::int64_t saved = 0;      // tensors that are recomputed when they are needed
  std::int64_t kept = 0;       // inside a segment, by choice
  std::int64_t passed_on = 0;  // to the hooks around the segment, by choice
  std::int64_t alive = 0;      // segments that something still refers to
};

}  // namespace ferry
