// The decisions of the core that are not calls of the device, in one list.
//
// Each rule is true in Ferry. A mutant is a Rules object in which one rule is false. So mutants are
// chosen at run time, and the core has no #ifdef.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ferry {

enum class Rule : std::uint8_t {
  kKeepSource,    // the forward stash keeps a source until its copy is ordered before its reuse
  kBoundStash,    // the forward stash is bounded
  kHoldTarget,    // the backward stash keeps a target of the copy stream's pool until its release
  kBoundReloads,  // bytes prefetched or held for later saves are bounded
  kCountEscapes,  // a target with references beyond the core's own is recorded as in use
  kReleaseLate,   // a target of the copy stream's pool is released one node after its use
  kEndOfTask,     // the end of a graph task drops what the task did not use
  kForget,        // a parcel that no saved tensor needs is removed from the tracker
  kIdentity,      // a storage is known by its identity, not by its address
  kVersioned,     // a parcel stands for one version of its storage
  kCovers,        // a parcel serves a view only if it holds all bytes of the view
  kShare,         // a storage that is saved again is not copied again
  kShareTarget,   // a storage that was reloaded serves its other saves while it is held
  kCheckVersion,  // unpacking a tensor that was written since its save is an error
  kExempt,        // parameters and buffers are kept
  kKeepKept,      // a storage that Ferry itself keeps alive is not offloaded
  kOtherDevice,   // tensors of another device are kept
  kOwnerPool,     // an evicted source makes the stream of its own pool wait
  kHostEvents,    // host bytes are returned after the copies that use them
  kCopyPart,      // if a small view of a large storage is saved, only its part is copied
  kUseSource,     // a tensor whose source is still on the device is not reloaded

  // Rules of checkpoints.
  kOuterInputs,      // a segment's inputs are saved under the hooks around it
  kStopAtLast,       // early stop comes with the last needed tensor, not with the one before
  kStopEarly,        // a recompute stops early
  kTaskKey,          // recomputed tensors belong to one graph task
  kThreadKey,        // recomputed tensors belong to one thread
  kFreshOutside,     // outside a backward every unpack recomputes
  kGroupKey,         // the backwards of a group share recomputed tensors
  kFreeUnpacked,     // a recomputed tensor is freed when it is unpacked
  kFreeUnneeded,     // a recomputed tensor is freed when autograd drops its holder
  kFreeAtEnd,        // a recomputed tensor is freed at the end of its graph task
  kRefuseTwice,      // unpacking twice in one task is an error
  kReplayRandom,     // a recompute gets the random numbers of forward
  kReplayAmbient,    // a recompute runs under the autocast state of forward
  kRecomputeGrad,    // a recompute runs with grad mode on
  kForwardStream,    // a recompute starts on the stream that forward started on
  kCheckRecompute,   // a recompute that saves other tensors than forward is an error
  kSkipDead,         // tensors that autograd dropped are not compared
  kKeepChosen,       // tensors kept or passed on inside a segment are not recomputed
  kFirstChoice,      // choices apply in forward only: a recompute inside a recompute makes all
  kUnfinished,       // a backward inside an unfinished forward can recompute
  kDetachReentrant,  // inputs of the reentrant variant are leaves
  kRefuseReentrant,  // the reentrant variant rejects `.grad()` with an error
  kKeepOutputs,      // an op whose outputs a selective checkpoint keeps is not recomputed
  kCheckOutputs,     // using a kept output that was written since is an error
  kLastPlain,        // the last segment of a chain has no checkpoint
  kRefuseLate,       // a span throws for a written argument when it needs it, not before

  // Rules of skip tensors and pipelines.
  kGiveUpPopped,       // a portal drops its tensor when it is popped
  kForgetRestash,      // a recompute of a stage does not keep what it stashes again
  kOwnPopped,          // a stage that may be recomputed owns what it popped
  kJoinStashed,        // a stash is part of its stage's backward
  kOrderPops,          // a popped tensor's gradient comes back before those of the stage's inputs
  kOrderPortals,       // a popped tensor's gradient moves before the stashing stage's backward
  kOrderMicrobatches,  // backward takes the micro-batches of a stage from the last to the first
  kRecomputeEarly,     // a stage recomputes before its gradient has arrived
  kCallersMode,        // workers run with the caller's grad mode
  kCheckpointSome,     // the checkpoint mode says which micro-batches are checkpointed
  kCheckpointStages,   // the options say which stages are checkpointed
  kPutAway,            // the inputs of a stage are saved under its own hooks until its recompute
  kRefuseRewriting,    // a stage that will be recomputed may not write its inputs
  kRefuseSharing,      // a stage may not write tensors that others use as well
  kBalanceCosts,       // stages are cut by the cost of their layers, not by their number
  kPopStashed,         // a declared stash that no layer pops is an error
  kSpacesApart,        // skip tensors of different namespaces are different
};

inline constexpr std::array<std::string_view, 64> kRuleNames = {
    "keep source",     "bound stash",        "hold target",      "bound reloads",
    "count escapes",   "release late",       "end of task",      "forget",
    "identity",        "versioned",          "covers",           "share",
    "share target",    "check version",      "exempt",           "keep kept",
    "other device",    "owner pool",         "host events",      "copy part",
    "use source",      "outer inputs",       "stop at last",     "stop early",
    "task key",        "thread key",         "fresh outside",    "group key",
    "free unpacked",   "free unneeded",      "free at end",      "refuse twice",
    "replay random",   "replay ambient",     "recompute grad",   "forward stream",
    "check recompute", "skip dead",          "keep chosen",      "first choice",
    "unfinished",      "detach reentrant",   "refuse reentrant", "keep outputs",
    "check outputs",   "last plain",         "refuse late",      "give up popped",
    "forget restash",  "own popped",         "join stashed",     "order pops",
    "order portals",   "order microbatches", "recompute early",  "callers mode",
    "checkpoint some", "checkpoint stages",  "put away",         "refuse rewriting",
    "refuse sharing",  "balance costs",      "pop stashed",      "spaces apart"};
inline constexpr std::size_t kRules = kRuleNames.size();
inline constexpr std::size_t kCheckpointRules = static_cast<std::size_t>(Rule::kGiveUpPopped);
static_assert(kRules == static_cast<std::size_t>(Rule::kSpacesApart) + 1);

constexpr std::string_view name(Rule rule) { return kRuleNames[static_cast<std::size_t>(rule)]; }

class Rules {
 public:
  Rules() = default;
  static Rules without(Rule rule) {
    Rules rules;
    rules.broken_ = rule;
    return rules;
  }
  bool holds(Rule rule) const { return broken_ != rule; }

 private:
  std::optional<Rule> broken_;
};

}  // namespace ferry
