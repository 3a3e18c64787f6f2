// torchtune's OffloadActivations (torchtune/training/_activation_offloading.py), and TRL's
// (trl/models/activation_offloading.py), which descends from it. Both are rebuilt from their
// published behaviour, and each fault that they once had is a policy. `ferry plan` simulates them
// as offload-all, and ferry verify checks that the oracles find their faults.
#pragma once

#include <memory>

#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/scheduler.h"

namespace ferry::field {

// The points in which the published versions differ.
struct StashPolicy {
  // Selects how a restored tensor that outlives its node is detected at the node's end: not at all,
  // by the storages of the node's results, or by the use count of its storage.
  enum class Escape { kUnseen, kResults, kCounted } escape = Escape::kCounted;
  // Selects the stream that counts as the computing one: the current one at construction; the
  // current one at each call; or, when a source is dropped, the stream of the source's pool.
  enum class Compute { kFirst, kCurrent, kOwner } compute = Compute::kFirst;
  // Selects where a view is cloned before it is copied: nowhere, on the copy stream, on the
  // computing stream.
  enum class Clone { kNever, kOnCopyStream, kOnCompute } clone = Clone::kNever;
  // A storage that is saved again is copied again, or stays on the device. Its key is forgotten
  // together with the source, or never.
  enum class Share { kNever, kForgotten, kRemembered } share = Share::kNever;
  // Selects the pack that begins a new forward: one after any unpack, or one after the last unpack.
  enum class Forward { kAfterUnpack, kAfterLast } forward = Forward::kAfterLast;
  // Selects what entering the context does with the leftovers of an earlier forward: it keeps them,
  // drops them, or drops them and numbers from 0 again.
  enum class Enter { kKeeps, kDrops, kRestarts } enter = Enter::kKeeps;
  // Selects what keeps a source until its copy to the host is done: the window of packs, at whose
  // end the computing stream waits for the copy; or only its pool, which is told of the use
  // (record_stream).
  enum class Hold { kWindow, kRecordUse } hold = Hold::kWindow;
  // A view with gaps is cloned without them, and comes back with the same values and other strides.
  // The checkers accept that copy, but values computed from it count as other ones.
  bool gathers = false;
  bool exit_clears = true;   // leaving the context waits for the streams and drops what is left
  bool drops_events = true;  // events are dropped with their tensors
  // A contiguous view, whose copy begins at the view, is restored with offset 0.
  bool drops_offset = true;
  // Tensors that share a parameter's storage, such as a transposed weight, do not move either.
  bool exempts_storages = false;
};
std::unique_ptr<sim::Scheduler> make_stash(sim::SimDevice device, sim::SimAutograd autograd,
                                           StashPolicy policy);

// Returns TRL's policy as of f2cd577, around a model whose parameters it knows. One thing differs:
// a view is cloned on the computing stream (PR #7195). On the copy stream, as in f2cd577, the clone
// races. Modules that TRL excludes by name (heads, final norms) are offloaded here.
constexpr StashPolicy trl() {
  return {.clone = StashPolicy::Clone::kOnCompute,
          .share = StashPolicy::Share::kForgotten,
          .enter = StashPolicy::Enter::kRestarts,
          .gathers = true,
          .exempts_storages = true};
}

// Returns TRL's policy before c26ba8789 (PR #6241, July 2026). It never forgot a storage that it
// had moved. So a later tensor of the same forward at that address counted as saved already, and
// stayed.
constexpr StashPolicy trl_with_stale_keys() {
  StashPolicy policy = trl();
  policy.share = StashPolicy::Share::kRemembered;
  return policy;
}

// Returns TRL's policy if nobody called update_model_params: a transposed weight is not a
// Parameter, so it moves.
constexpr StashPolicy trl_untold() {
  StashPolicy policy = trl();
  policy.exempts_storages = false;
  return policy;
}

// Returns TRL's policy with record_stream instead of the window, as in DeepSpeed and Megatron-LM.
// The computing stream never waits for a copy to the host, so saved tensors pile up in the pool
// when the copies fall behind.
constexpr StashPolicy by_record_stream() {
  StashPolicy policy = trl();
  policy.hold = StashPolicy::Hold::kRecordUse;
  policy.share = StashPolicy::Share::kNever;
  return policy;
}

}  // namespace ferry::field
