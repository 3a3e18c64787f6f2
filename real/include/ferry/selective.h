// Selective activation checkpointing: in a checkpointed function a policy decides for each op
// whether its outputs are kept for backward, offloaded to the host, or recomputed.
//
//   options.context_fn(ferry::selective({"aten::mm", "aten::addmm"}));
//
//   using enum ferry::CheckpointPolicy;
//   options.context_fn(ferry::selective([](const ferry::SelectiveCall& call) {
//     return call.op == "aten::mm" && call.index % 2 == 0 ? kMustSave : kMustRecompute;
//   }));
//
// It behaves like torch.utils.checkpoint.create_selective_checkpoint_contexts after PyTorch 2.11:
//
//  * The policy is called in forward, and recomputes follow its decisions. So there is no
//    is_recompute. In a recompute it is called only for calls that forward did not make.
//  * A call is identified by the name of its op and its number. Error is thrown if a recompute
//    makes a call that forward did not make, and the policy keeps it or kept another call of this
//    op; if it needs a tensor that an earlier recompute used up (a second backward through the
//    region); or if a kept tensor was written in place since. allow_cache_entry_mutation allows the
//    last case, except for tensors that hooks hold, because those check by themselves.
//
// In addition:
//
//  * kMustOffload and kPreferOffload give the tensor to the hooks around the checkpoint
//    (ferry::OffloadGuard, ferry::SavedTensorsHooks). They bring it back when the recompute reaches
//    that op. Without such hooks the tensor is kept.
//  * Ops that compute no tensor of their own (views, detach, sizes, empty memory), or that write an
//    argument (in place, `out=`), are always recomputed, and the policy is not called for them. If
//    they were kept, the argument would not be written. A list that names one throws ValueError.
//  * A cast between floating-point types (aten::_to_copy) is always recomputed, and the policy is
//    not called for it. Whether autocast makes a cast depends on what it has cast before, so
//    forward and recompute may differ.
//  * A kept op that used random numbers advances the generator as in forward, so later ops get the
//    same numbers.
//
// Ops are those below autograd: at::linear is aten::t and aten::addmm there. A list with a name
// that never occurs there throws ValueError. All outputs of a chosen op are kept, even unneeded
// ones, so keeping everything costs more than no checkpoint. Custom autograd functions are not ops;
// the ops inside them are.
//
// Limits. Ops of a backward inside the function count too. If several engine threads run it, their
// order is not fixed, so let such ops be recomputed. Hooks pushed inside the function must run the
// same ops in both runs. If the nodes of one region run on several devices, each engine thread
// recomputes for itself, and the second one finds the kept tensors used up. This file needs a
// dispatch key of its own; see real/autograd/below_autograd.h.
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

// The argument of a policy. It is valid during the call only.
struct SelectiveCall {
  const std::string& op;              // "aten::mm", "aten::add.Tensor"
  std::size_t index;                  // number among the calls of this op in the checkpointed call
  const c10::OperatorHandle& handle;  // has the schema
  c10::ArrayRef<c10::IValue> arguments;
};

// Called on the thread that runs the op, before it runs. Ops that the policy itself runs are not
// seen. If the policy throws, the exception leaves the op.
using SelectivePolicy = std::function<CheckpointPolicy(const SelectiveCall&)>;
// True means kMustSave, false means kPreferRecompute.
using SelectiveChoice = std::function<bool(const SelectiveCall&)>;

// Returns a value for the option context_fn. It can serve any number of checkpointed calls. The
// scopes that it makes must end on their thread, in reverse order.
std::function<CheckpointContexts()> selective(SelectivePolicy policy,
                                              bool allow_cache_entry_mutation = false);
std::function<CheckpointContexts()> selective(SelectiveChoice choice,
                                              bool allow_cache_entry_mutation = false);
// Uses kMustSave for these ops and kPreferRecompute for all others. Names are those of the
// dispatcher, with their overload. If the overload is empty ("aten::mm"), ".default" may be added.
// Throws ValueError for a name that no policy could ever get.
std::function<CheckpointContexts()> selective(const std::vector<std::string>& ops,
                                              bool allow_cache_entry_mutation = false);

}  // namespace ferry
