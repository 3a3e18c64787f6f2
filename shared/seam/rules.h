// The decisions of the core that are not calls into the device, gathered in one place.
//
// Each is true in Ferry. A mutant is a Rules with one of them false: so mutants are chosen at run
// time, and the core has no #ifdef.
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
  kReleaseLate,   // a target of the copy stream's pool is released one node later
  kEndOfTask,     // the end of a graph task drops what the task left
  kForget,        // a parcel that no saved tensor needs leaves the tracker
  kIdentity,      // a storage is known by its identity, not by its address
  kVersioned,     // a parcel stands for one version of its storage
  kCovers,        // a parcel serves a view only where it holds all its bytes
  kShare,         // a storage saved again is not copied again
  kShareTarget,   // a storage reloaded once serves its other saves while it is held
  kCheckVersion,  // unpacking a tensor that was written since its save is an error
  kExempt,        // parameters and buffers are kept
  kKeepKept,      // a storage that Ferry itself keeps alive is not offloaded
  kOtherDevice,   // tensors of another device are kept
  kOwnerPool,     // an evicted source waits on the stream of its own pool
  kHostEvents,    // host bytes go back after the copies that use them
  kCopyPart,      // of a large storage only the part under a small view is copied
  kUseSource,     // a tensor whose source is still there is not reloaded

  // Rules of checkpoints.
  kOuterInputs,      // a segment's inputs are saved under the hooks around it
  kStopAtLast,       // early stop comes with the last tensor that is needed, not one before
  kStopEarly,        // early stop stops
  kTaskKey,          // what is recomputed belongs to one graph task
  kThreadKey,        // what is recomputed belongs to one thread
  kFreshOutside,     // outside a backward every access recomputes
  kGroupKey,         // a group's backwards share what is recomputed
  kFreeUnpacked,     // a recomputed tensor goes when it is unpacked
  kFreeUnneeded,     // a recomputed tensor goes when autograd drops its holder
  kFreeAtEnd,        // a recomputed tensor goes with its graph task
  kRefuseTwice,      // unpacking twice in one task is an error
  kReplayRandom,     // random numbers of a recompute are those of forward
  kReplayAmbient,    // a recompute sees forward's autocast
  kRecomputeGrad,    // a recompute runs with grad mode on
  kForwardStream,    // a recompute starts on the stream that forward started on
  kCheckRecompute,   // a recompute that saves other tensors is an error
  kSkipDead,         // a recompute is not compared for tensors that autograd dropped
  kKeepChosen,       // tensors kept or passed on inside a segment are not recomputed
  kFirstChoice,      // choices apply in forward only: a recompute recomputes all
  kUnfinished,       // a backward inside an unfinished forward may recompute
  kDetachReentrant,  // the reentrant variant's inputs are leaves
  kRefuseReentrant,  // the reentrant variant refuses `.grad()`
  kKeepOutputs,      // an op whose outputs a selective checkpoint keeps does not run again
  kCheckOutputs,     // a kept output that was written since is an error when it is asked for
  kLastPlain,        // the last segment of a chain runs without a checkpoint
  kRefuseLate,       // a span whose argument was written is refused when it needs it, not before

  // Rules of skip tensors and pipelines.
  kGiveUpPopped,       // a portal gives its tensor up when it is popped
  kForgetRestash,      // a stage that runs again does not keep what it stashes
  kOwnPopped,          // a stage that may run again owns what it popped
  kJoinStashed,        // a stash is part of its stage's backward
  kOrderPops,          // a popped tensor's gradient comes back before those of the stage's inputs
  kOrderPortals,       // a popped tensor's gradient moves before the stashing stage goes backward
  kOrderMicrobatches,  // backward takes a stage's micro-batches from the last to the first
  kRecomputeEarly,     // a stage runs again before its gradient has arrived
  kCallersMode,        // workers have the caller's grad mode
  kCheckpointSome,     // the checkpoint mode says which micro-batches are checkpointed
  kCheckpointStages,   // the options say which stages are checkpointed
  kPutAway,            // a stage's inputs are saved under its own hooks until it runs again
  kRefuseRewriting,    // a stage that is to run again may not write what it is given
  kRefuseSharing,      // a stage may not write what others have as well
  kBalanceCosts,       // stages are cut by what their layers cost, not by their number
  kPopStashed,         // a declared stash that no layer pops is an error
  kSpacesApart,        // a skip tensor of another namespace is another one
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
