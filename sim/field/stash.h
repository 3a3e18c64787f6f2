// torchtune's OffloadActivations (torchtune/training/_activation_offloading.py) and TRL's
// (trl/models/activation_offloading.py), re-enacted from their published behaviour, with each fault
// that they once had as a policy.
#pragma once

#include <memory>

#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/scheduler.h"

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
          .exempts_storages = true};
}

}  // namespace ferry::field
