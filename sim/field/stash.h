// torchtune's OffloadActivations (torchtune/training/_activation_offloading.py) and TRL's
// (trl/models/activation_offloading.py), re-enacted from their published behaviour, with what was
// wrong with them at some time as a policy.
#pragma once

#include <memory>

#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/scheduler.h"

namespace ferry::field {

// torchtune's OffloadActivations, and TRL's, which descends from it.
struct StashPolicy {
  // How a node's end finds out that a restored tensor outlives it: not at all, by the storages of
  // the node's results, or by the storage's use count.
  enum class Escape { kUnseen, kResults, kCounted } escape = Escape::kCounted;
  // The stream that is taken for the computing one: that at construction, or the current one; and,
  // where a source is dropped, the one whose pool it goes back to.
  enum class Compute { kFirst, kCurrent, kOwner } compute = Compute::kFirst;
  // A view is cloned before it is copied: never, on the copy stream, on the computing stream.
  enum class Clone { kNever, kOnCopyStream, kOnCompute } clone = Clone::kNever;
  // A storage saved again stays on the device; its key is forgotten with the source, or never.
  enum class Share { kNever, kForgotten, kRemembered } share = Share::kNever;
  // When the next pack is taken for the first one of a forward: after any unpack, or after the last
  // one.
  enum class Forward { kAfterUnpack, kAfterLast } forward = Forward::kAfterLast;
  // What entering the context does to what an earlier forward left: keeps it, drops it, drops it
  // and numbers from 0 again.
  enum class Enter { kKeeps, kDrops, kRestarts } enter = Enter::kKeeps;
  bool exit_clears = true;   // leaving it waits for the streams and drops what is left
  bool drops_events = true;  // with their tensors
  // Where the copy of a contiguous view begins with it, so does what is made of the copy.
  bool drops_offset = true;
  // What shares a parameter's storage is left alone like it: a transposed weight, say.
  bool exempts_storages = false;
};
std::unique_ptr<sim::Scheduler> make_stash(sim::SimDevice device, sim::SimAutograd autograd,
                                           StashPolicy policy);

// TRL's as of f2cd577, around a model whose parameters it was told. But for one thing: a view is
// cloned on the computing stream (PR #7195); on the copy stream, as in f2cd577, the clone races.
// What TRL excludes by a module's name (heads, final norms) is moved.
constexpr StashPolicy trl() {
  return {.clone = StashPolicy::Clone::kOnCompute,
          .share = StashPolicy::Share::kForgotten,
          .enter = StashPolicy::Enter::kRestarts,
          .exempts_storages = true};
}

}  // namespace ferry::field
