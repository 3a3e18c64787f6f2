// torchtune's OffloadActivations (torchtune/training/_activation_offloading.py) and TRL's
// (trl/models/activation_offloading.py), re-enacted from their published behaviour, with each fault
// that they once had as a policy.
#pragma once

#include <memory>

#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/scheduler.h"

namespace ferry::field {

// torchtune's OffloadActivations, and TRL's, which descends from it.
struct StashPolicy {
  // How a node's end detects that a restored tensor outlives it: not at all, by the storages of the
  // node's results, or by the storage's use count.
  enum class Escape { kUnseen, kResults, kCounted } escape = Escape::kCounted;
  // The stream taken for the computing one: that at construction, the current one or, when a source
  // is dropped, the one of its own pool.
  enum class Compute { kFirst, kCurrent, kOwner } compute = Compute::kFirst;
  // A view is cloned before it is copied: never, on the copy stream, on the computing stream.
  enum class Clone { kNever, kOnCopyStream, kOnCompute } clone = Clone::kNever;
  // A storage saved again is copied again, or stays: its key goes with the source, or never.
  enum class Share { kNever, kForgotten, kRemembered } share = Share::kNever;
  // When a pack counts as the first of a new forward: after any unpack, or after the last
  // one.
  enum class Forward { kAfterUnpack, kAfterLast } forward = Forward::kAfterLast;
  // The effect of entering the context on what an earlier forward left: keep it, drop it, or drop
  // it and number from 0 again.
  enum class Enter { kKeeps, kDrops, kRestarts } enter = Enter::kKeeps;
  // What keeps a source until its copy to the host is done: the window of packs, at whose end the
  // computing stream waits for the copy; or nothing but its pool, which is told that the copy uses
  // it (record_stream).
  enum class Hold { kWindow, kRecordUse } hold = Hold::kWindow;
  // A view with gaps is cloned without them, and comes back so: with its values, and other strides.
  // The checkers know that copy, and no value that is computed from it.
  bool gathers = false;
  bool exit_clears = true;   // leaving waits for the streams and drops what is left
  bool drops_events = true;  // also drops the events with their tensors
  // If the copy of a contiguous view begins at the view, the restored tensor does, too.
  bool drops_offset = true;
  // Tensors that share a parameter's storage, such as a transposed weight, are left alone, too.
  bool exempts_storages = false;
};
std::unique_ptr<sim::Scheduler> make_stash(sim::SimDevice device, sim::SimAutograd autograd,
                                           StashPolicy policy);

// TRL's as of f2cd577, around a model whose parameters it knows. One thing differs: a view is
// cloned on the computing stream (PR #7195); on the copy stream, as in f2cd577, the clone races.
// Modules that TRL excludes by name (heads, final norms) are offloaded here.
constexpr StashPolicy trl() {
  return {.clone = StashPolicy::Clone::kOnCompute,
          .share = StashPolicy::Share::kForgotten,
          .enter = StashPolicy::Enter::kRestarts,
          .gathers = true,
          .exempts_storages = true};
}

// TRL's before c26ba8789 (PR #6241, July 2026), which never forgot a storage that it had moved:
// what was given that address later in the forward was taken for saved already, and stayed.
constexpr StashPolicy trl_with_stale_keys() {
  StashPolicy policy = trl();
  policy.share = StashPolicy::Share::kRemembered;
  return policy;
}

// TRL's where nobody called update_model_params: a transposed weight is no Parameter, and moves.
constexpr StashPolicy trl_untold() {
  StashPolicy policy = trl();
  policy.exempts_storages = false;
  return policy;
}

// TRL's with record_stream in place of the window, as DeepSpeed's and Megatron-LM's are: computing
// never waits for a copy out, so what was saved gathers in the pool as the copies fall behind.
constexpr StashPolicy by_record_stream() {
  StashPolicy policy = trl();
  policy.hold = StashPolicy::Hold::kRecordUse;
  policy.share = StashPolicy::Share::kNever;
  return policy;
}

}  // namespace ferry::field
