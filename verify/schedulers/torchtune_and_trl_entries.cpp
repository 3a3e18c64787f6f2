// The entries of the registry (registry.h) for torchtune and TRL. All run one scheduler
// (sim/field/stash.h), with a policy for each version. Sometimes the fix of one fault was the cause
// of the next: see 4280, 5730 and enter, or 5694 and 7195.
#include <algorithm>
#include <cstddef>

#include "verify/hunted/limits.h"
#include "verify/schedulers/entries.h"

namespace ferry::verify::schedulers {
namespace {

template <StashPolicy kPolicy>
std::unique_ptr<sim::Scheduler> stash(sim::SimDevice device, sim::SimAutograd autograd) {
  return make_stash(device, autograd, kPolicy);
}

using Escape = StashPolicy::Escape;
using Compute = StashPolicy::Compute;
using Clone = StashPolicy::Clone;
using Share = StashPolicy::Share;
using Forward = StashPolicy::Forward;
using Enter = StashPolicy::Enter;

// The contexts of torchtune, and of TRL before PR #5738, clear nothing.
constexpr StashPolicy torchtune(Escape escape, bool drops_events = true) {
  return {.escape = escape,
          .forward = Forward::kAfterUnpack,
          .exit_clears = false,
          .drops_events = drops_events};
}
constexpr StashPolicy trl_of_2025(Forward forward) {
  return {.forward = forward, .exit_clears = false};
}
constexpr StashPolicy trl_with_offsets() {
  return {.enter = Enter::kRestarts, .drops_offset = false};
}
// TRL at commit f2cd577, except for the clone.
constexpr StashPolicy trl(Clone clone, Share share = Share::kForgotten,
                          Compute compute = Compute::kFirst, Enter enter = Enter::kRestarts) {
  StashPolicy policy = field::trl();
  policy.compute = compute;
  policy.clone = clone;
  policy.share = share;
  policy.enter = enter;
  policy.exempts_storages = false;
  policy.gathers = false;  // because gradients are compared
  return policy;
}

// TRL expects one backward after each forward, one unpack of each save, and one stream.
void one_stash(Recipe& recipe) {
  in_turn(recipe);
  one_unpack(recipe);
  without_late_writes(recipe);
  without_side_streams(recipe);
}
// torchtune's context, and TRL's before it cleared itself, need every saved tensor to be unpacked.
void strict_stash(Recipe& recipe) {
  one_stash(recipe);
  without_failures(recipe);
  without_dead_branches(recipe);
  without(recipe, {LayerKind::kNested});
}
void strict_stash_not_reentrant(Recipe& recipe) {
  strict_stash(recipe);
  without_segment_bits(recipe, verify::kReentrantBit);
}
void second_backward(Recipe& recipe) {
  one_stash(recipe);
  recipe.retain = true;
}
void backward_behind_backward(Recipe& recipe) {
  strict_stash_not_reentrant(recipe);
  recipe.order = MicrobatchOrder::kFfbb;
  recipe.microbatches = 2;
}
void failing_backward(Recipe& recipe) {
  strict_stash_not_reentrant(recipe);
  recipe.failure = StepFailure::kBackwardRaises;
}
void escaping_results(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kNested, LayerKind::kSideStream},
          LayerKind::kEscape);
  strict_stash_not_reentrant(recipe);
  without_segments(recipe);
}
void escaping_saves(Recipe& recipe) {
  recipe.segments = true;
  strict_stash_not_reentrant(recipe);
}
void reentrant(Recipe& recipe) {
  recipe.segments = true;
  strict_stash(recipe);
}
void dead_branches(Recipe& recipe) {
  const Recipe drawn = recipe;
  strict_stash(recipe);
  for (std::size_t i = 0; i < drawn.layers.size(); ++i) {
    if (drawn.layers[i].kind == LayerKind::kDeadBranch) {
      recipe.layers[i].kind = drawn.layers[i].kind;
    }
  }
}
void forward_ahead(Recipe& recipe) {
  strict_stash(recipe);
  recipe.order = MicrobatchOrder::kOneForwardOneBackward;
  recipe.microbatches = std::max(recipe.microbatches, 2);
  draws_random_numbers(recipe);
}
void forwards_before_backwards(Recipe& recipe) {
  const MicrobatchOrder order = recipe.order;
  forward_ahead(recipe);
  recipe.order = std::max(order, MicrobatchOrder::kFfbb);
}
void without_views(Recipe& recipe) {
  strict_stash(recipe);
  without(recipe, {LayerKind::kSavesView, LayerKind::kSmallView});
}
void small_views(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kSideStream}, LayerKind::kSmallView);
  strict_stash(recipe);
}
void side_streams(Recipe& recipe) {
  without(recipe, {LayerKind::kDeadBranch, LayerKind::kNested}, LayerKind::kSideStream);
  in_turn(recipe);
  one_unpack(recipe);
  without_late_writes(recipe);
}
void many_side_streams(Recipe& recipe) {
  without(recipe, {LayerKind::kExcluded, LayerKind::kEscape, LayerKind::kWrittenBetween},
          LayerKind::kSideStream);
  side_streams(recipe);
  one_size(recipe);
}

constexpr SchedulerEntry kEntries[] = {
    {
        .name = "torchtune-1860",
        .system = "torchtune",
        .faulty = true,
        .what =
            "a node's backward returns a view of a restored tensor, whose block is reused under it",
        .source = "PR #1860 (3ca0d309c)",
        .oracle = Oracle::kHappensBefore,
        .fixed = "torchtune-1860-fixed",
        .make = stash<torchtune(Escape::kUnseen)>,
        .limit = escaping_results,
    },
    {
        .name = "torchtune-1860-fixed",
        .system = "torchtune",
        .what =
            "record_stream where a result shares the restored storage (no recomputes: see 1936)",
        .source = "PR #1860",
        .make = stash<torchtune(Escape::kResults)>,
        .limit = escaping_results,
    },
    {
        .name = "torchtune-1936",
        .system = "torchtune",
        .faulty = true,
        .what = "a recompute saves a view of a restored tensor: no result shows it",
        .source = "#1867, PR #1936 (9eced211b)",
        .oracle = Oracle::kHappensBefore,
        .fixed = "torchtune-fixed",
        .make = stash<torchtune(Escape::kResults)>,
        .limit = escaping_saves,
    },
    {
        .name = "torchtune-events",
        .system = "torchtune",
        .faulty = true,
        .what = "the event of each restored tensor is kept for good",
        .source = "main, bwd_ev_stash",
        .oracle = Oracle::kLeak,
        .fixed = "torchtune-fixed",
        .make = stash<torchtune(Escape::kCounted, false)>,
        .limit = strict_stash_not_reentrant,
    },
    {
        .name = "torchtune-fixed",
        .system = "torchtune",
        .what = "record_stream where the use count grew; an event goes with its tensor",
        .source = "PR #1936",
        .make = stash<torchtune(Escape::kCounted)>,
        .limit = strict_stash_not_reentrant,
    },
    {
        .name = "torchtune-backwards",
        .system = "torchtune",
        .faulty = true,
        .what = "a second backward without a pack in between: restored tensors are not released",
        .source = "main",
        .oracle = Oracle::kLeak,
        .make = stash<torchtune(Escape::kCounted)>,
        .limit = backward_behind_backward,
    },
    {
        .name = "torchtune-failure",
        .system = "torchtune",
        .faulty = true,
        .what = "a backward fails: tensors that it did not unpack make every later forward fail",
        .source = "main",
        .oracle = Oracle::kError,
        .fixed = "torchtune-failure-fixed",
        .make = stash<torchtune(Escape::kCounted)>,
        .limit = failing_backward,
    },
    {
        .name = "torchtune-failure-fixed",
        .system = "torchtune",
        .what = "the context clears itself, as TRL's does (torchtune's does not)",
        .source = "TRL PR #5738",
        .make = stash<trl(Clone::kNever, Share::kNever)>,
        .limit = failing_backward,
    },
    {
        .name = "trl-4280",
        .system = "TRL",
        .faulty = true,
        .what = "a pack in a reentrant recompute is taken for the start of the next forward",
        .source = "#4280 (11fa70c)",
        .oracle = Oracle::kError,
        .fixed = "trl-4280-fixed",
        .make = stash<trl_of_2025(Forward::kAfterUnpack)>,
        .limit = reentrant,
    },
    {
        .name = "trl-4280-fixed",
        .system = "TRL",
        .what = "a forward begins when everything is unpacked (nothing unused: see 5730)",
        .source = "PR #4236 (803ec0d85)",
        .make = stash<trl_of_2025(Forward::kAfterLast)>,
        .limit = reentrant,
    },
    {
        .name = "trl-5730",
        .system = "TRL",
        .faulty = true,
        .what = "saved tensors that no backward uses stay in the tracker, with those of later "
                "steps",
        .source = "#5730, #5737",
        .oracle = Oracle::kLeak,
        .fixed = "trl-5730-fixed",
        .make = stash<trl_of_2025(Forward::kAfterLast)>,
        .limit = dead_branches,
    },
    {
        .name = "trl-5730-fixed",
        .system = "TRL",
        .what = "entering the context drops what is left (one forward at a time: see enter)",
        .source = "PR #5738",
        .make = stash<trl(Clone::kNever, Share::kNever)>,
        .limit = one_stash,
    },
    {
        .name = "trl-enter",
        .system = "TRL",
        .faulty = true,
        .what = "a second forward before the first backward uses the same numbers for its tensors",
        .source = "f2cd577, __enter__",
        .oracle = Oracle::kValue,
        .fixed = "trl-enter-fixed",
        .make = stash<trl(Clone::kNever, Share::kNever)>,
        .limit = forward_ahead,
    },
    {
        .name = "trl-enter-fixed",
        .system = "TRL",
        .what = "numbers continue, and the rest is dropped at the end of the step (no fix is "
                "published)",
        .source = "",
        .make = stash<trl(Clone::kNever, Share::kNever, Compute::kFirst, Enter::kKeeps)>,
        .limit = forwards_before_backwards,
    },
    {
        .name = "trl-6241",
        .system = "TRL",
        .faulty = true,
        .what =
            "a freed storage's key stays: a new tensor at its address is taken for it, and kept",
        .source = "#6241",
        .oracle = Oracle::kMoves,
        .fixed = "trl-6241-fixed",
        .make = stash<trl(Clone::kNever, Share::kRemembered)>,
        .limit = without_views,
        .moves_all = true,
    },
    {
        .name = "trl-6241-fixed",
        .system = "TRL",
        .what = "the key goes with the source (no clones: see clone-key)",
        .source = "#6241 (c26ba8789)",
        .make = stash<trl(Clone::kNever)>,
        .limit = without_views,
        .moves_all = true,
    },
    {
        .name = "trl-clone-key",
        .system = "TRL",
        .faulty = true,
        .what = "the key is the original's, but a clone of it is held: the same false match",
        .source = "f2cd577",
        .oracle = Oracle::kMoves,
        .make = stash<trl(Clone::kOnCompute)>,
        .limit = small_views,
        .moves_all = true,
    },
    {
        .name = "trl-5694",
        .system = "TRL",
        .faulty = true,
        .what = "a contiguous view's copy begins with the view, and is read at the view's offset",
        .source = "main before PR #5694",
        .oracle = Oracle::kError,
        .fixed = "trl-7195-fixed",
        .make = stash<trl_with_offsets()>,
        .limit = small_views,
    },
    {
        .name = "trl-7195",
        .system = "TRL",
        .faulty = true,
        .what = "a view is cloned on the copy stream, without order to its original and its uses",
        .source = "PR #5694 (25e294c4d)",
        .oracle = Oracle::kHappensBefore,
        .fixed = "trl-7195-fixed",
        .make = stash<trl(Clone::kOnCopyStream)>,
        .limit = one_stash,
    },
    {
        .name = "trl-7195-fixed",
        .system = "TRL",
        .what = "the clone is made on the compute stream, before the copy stream waits",
        .source = "PR #7195",
        .make = stash<trl(Clone::kOnCompute)>,
        .limit = one_stash,
    },
    {
        .name = "trl-default-stream",
        .system = "TRL",
        .faulty = true,
        .what = "the default stream is taken for the one that computes",
        .source = "f2cd577, l. 160",
        .oracle = Oracle::kHappensBefore,
        .fixed = "trl-current-stream-fixed",
        .make = stash<trl(Clone::kOnCompute, Share::kForgotten, Compute::kFirst)>,
        .limit = side_streams,
    },
    {
        .name = "trl-current-stream",
        .system = "TRL",
        .faulty = true,
        .what =
            "the current stream waits for the copy, but the block returns to another stream's pool",
        .source = "PR #7195, idea",
        .oracle = Oracle::kHappensBefore,
        .fixed = "trl-current-stream-fixed",
        .make = stash<trl(Clone::kOnCompute, Share::kForgotten, Compute::kCurrent)>,
        .limit = many_side_streams,
    },
    {
        .name = "trl-current-stream-fixed",
        .system = "TRL",
        .what = "the stream of the source's pool waits (no fix is published)",
        .source = "",
        .make = stash<trl(Clone::kOnCompute, Share::kForgotten, Compute::kOwner)>,
        .limit = side_streams,
    },
    {
        .name = "trl-second-backward",
        .system = "TRL",
        .faulty = true,
        .what = "with retain_graph, a tensor can be unpacked only once",
        .source = "f2cd577",
        .oracle = Oracle::kError,
        .make = stash<trl(Clone::kOnCompute)>,
        .limit = second_backward,
    },
};

}  // namespace

std::span<const SchedulerEntry> torchtune_and_trl_entries() { return kEntries; }

}  // namespace ferry::verify::schedulers
