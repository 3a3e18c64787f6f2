// Selective activation checkpointing: inside a checkpointed function a policy decides for each op
// whether its outputs are kept for backward, go to the host, or are computed again.
//
//   options.context_fn(ferry::selective({"aten::mm", "aten::addmm"}));
//
//   using enum ferry::CheckpointPolicy;
//   options.context_fn(ferry::selective([](const ferry::SelectiveCall& call) {
//     return call.op == "aten::mm" && call.index % 2 == 0 ? kMustSave : kMustRecompute;
//   }));
//
// The meaning is that of torch.utils.checkpoint.create_selective_checkpoint_contexts after PyTorch
// 2.11:
//
//  * The policy is asked in forward, and a recompute follows: there is no is_recompute. It is asked
//    again of a call that forward did not have, alone.
//  * A call of an op is known by the op's name and its number. Error where a recompute runs a call
//    that forward did not have and the policy keeps it, or kept another of that op; where it needs
//    what an earlier recompute used up (a second backward through the region), or finds a kept
//    tensor written in place since. The last is let pass with allow_cache_entry_mutation, unless
//    the tensor is with hooks: those check by themselves.
//
// Beyond it:
//
//  * kMustOffload and kPreferOffload give the tensor to the hooks around the checkpoint
//    (ferry::OffloadGuard, ferry::SavedTensorsHooks), which bring it back when the recompute comes
//    to that op. Where there are none, the tensor is kept.
//  * Ops that compute no tensor of their own (views, detach, sizes, empty memory), or that write an
//    argument (in place, `out=`), always run again, and nobody is asked: kept, they would leave
//    that argument unwritten. A list that names one is refused.
//  * A cast from one floating-point type to another (aten::_to_copy) always runs again, and nobody
//    is asked: whether autocast makes one depends on what it has cast before, and so may differ
//    between forward and recompute.
//  * A kept op that drew random numbers moves the generator on as it did in forward, so that what
//    draws after it draws the same.
//
// Ops are those below autograd, where at::linear is aten::t and aten::addmm; a list that names one
// that never arrives there is refused. All outputs of a chosen op are kept, needed or not: to save
// everything costs more than no checkpoint. Custom autograd functions are no ops; the ops within
// are.
//
// Limits. Ops of a backward inside the function count as well: where several of the engine's
// threads run it, their order is not fixed, so let those be recomputed. Hooks pushed inside the
// function are to run the same ops in both runs. Where nodes of one region run on several devices,
// each of the engine's threads recomputes for itself, and the second finds what it needs used up.
// A dispatch key is occupied: see real/autograd/below_autograd.h.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "shared/checkpoint/selective.h"
#include "shared/seam/checkpoint_options.h"

namespace c10 {
class OperatorHandle;
}

namespace ferry {

// The question to a policy. It lives as long as the call.
struct SelectiveCall {
  const std::string& op;              // "aten::mm", "aten::add.Tensor"
  std::size_t index;                  // its number among this op's calls in this checkpointed call
  const c10::OperatorHandle& handle;  // with its schema
  c10::ArrayRef<c10::IValue> arguments;
};

// Called on the thread that runs the op, before it runs; ops that it runs itself are not seen. An
// exception from it leaves the op.
using SelectivePolicy = std::function<CheckpointPolicy(const SelectiveCall&)>;
// Returns true for kMustSave, false for kPreferRecompute.
using SelectiveChoice = std::function<bool(const SelectiveCall&)>;

// A value for the options' context_fn; serves any number of checkpointed calls. The scopes that it
// makes end in the reverse order of their making, on their thread.
std::function<CheckpointContexts()> selective(SelectivePolicy policy,
                                              bool allow_cache_entry_mutation = false);
std::function<CheckpointContexts()> selective(SelectiveChoice choice,
                                              bool allow_cache_entry_mutation = false);
// kMustSave for these ops, kPreferRecompute for all others. Names are the dispatcher's, with their
// overload; if that is empty ("aten::mm"), ".default" may be added. Throws ValueError
// for a name that no policy could ever see.
std::function<CheckpointContexts()> selective(const std::vector<std::string>& ops,
                                              bool allow_cache_entry_mutation = false);

}  // namespace ferry
