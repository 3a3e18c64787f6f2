#include "sim/schedulers/registry.h"

#include <algorithm>
#include <array>

#include "sim/schedulers/limits.h"
#include "sim/schedulers/programs.h"

namespace ferry::sim {
namespace {

template <StashPolicy kPolicy>
std::unique_ptr<Scheduler> stash(SimDevice device, SimAutograd autograd) {
  return make_stash(device, autograd, kPolicy);
}
template <auto kMake, auto kPolicy>
std::unique_ptr<Scheduler> made(SimDevice device, SimAutograd autograd) {
  return kMake(device, autograd, kPolicy);
}

using Escape = StashPolicy::Escape;
using Compute = StashPolicy::Compute;
using Clone = StashPolicy::Clone;
using Share = StashPolicy::Share;
using Forward = StashPolicy::Forward;
using Enter = StashPolicy::Enter;

// torchtune's leaves nothing behind by itself, and TRL's did so until its context cleared.
constexpr StashPolicy kTorchtune{.forward = Forward::kAfterUnpack, .exit_clears = false};
constexpr StashPolicy torchtune(Escape escape, bool drops_events = true) {
  StashPolicy policy = kTorchtune;
  policy.escape = escape;
  policy.drops_events = drops_events;
  return policy;
}
constexpr StashPolicy trl_of_2025(Forward forward) {
  return {.forward = forward, .exit_clears = false};
}
constexpr StashPolicy trl_with_offsets() {
  StashPolicy policy{.enter = Enter::kRestarts};
  policy.drops_offset = false;
  return policy;
}
// TRL as of f2cd577, but for the clone.
constexpr StashPolicy trl(Clone clone, Share share = Share::kForgotten,
                          Compute compute = Compute::kFirst, Enter enter = Enter::kRestarts) {
  return {.compute = compute, .clone = clone, .share = share, .enter = enter};
}

// TRL's: one backward behind each forward, each save unpacked once, on one stream.
void one_stash(Recipe& recipe) {
  in_turn(recipe);
  one_unpack(recipe);
  without_late_writes(recipe);
  without_side_streams(recipe);
}
// And before its context cleared itself, and torchtune's: everything that is saved is unpacked.
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
  recipe.order = 1;
  recipe.microbatches = 2;
}
void failing_backward(Recipe& recipe) {
  strict_stash_not_reentrant(recipe);
  recipe.failure = 2;
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
    if (drawn.layers[i].kind == static_cast<int>(LayerKind::kDeadBranch)) {
      recipe.layers[i].kind = drawn.layers[i].kind;
    }
  }
}
void forward_ahead(Recipe& recipe) {
  strict_stash(recipe);
  recipe.order = 2;
  recipe.microbatches = std::max(recipe.microbatches, 2);
  draws_random_numbers(recipe);
}
void forwards_before_backwards(Recipe& recipe) {
  const int order = recipe.order;
  forward_ahead(recipe);
  recipe.order = std::max(order, 1);
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

// What is saved is popped at most once, and not written since: its group comes back as a whole.
void groups(Recipe& recipe) {
  one_unpack(recipe);
  without(recipe, {LayerKind::kWrittenBetween});
  without_failures(recipe);
  without_side_streams(recipe);
}
void groups_ahead(Recipe& recipe) {
  groups(recipe);
  recipe.order = 2;
  recipe.microbatches = std::max(recipe.microbatches, 2);
}
void groups_in_turn(Recipe& recipe) {
  groups(recipe);
  in_turn(recipe);
}
void unused_groups(Recipe& recipe) {
  without(recipe, {LayerKind::kNested, LayerKind::kSideStream}, LayerKind::kDeadBranch);
  groups_in_turn(recipe);
}
void slots(Recipe& recipe) {
  in_turn(recipe);
  recipe.derivatives = 1;
  without_late_writes(recipe);
  without_side_streams(recipe);
}
void forwards_ahead(Recipe& recipe) {
  recipe.derivatives = 1;
  recipe.order = std::max(recipe.order, 1);
  recipe.microbatches = std::max(recipe.microbatches, 2);
  without_late_writes(recipe);
  without_side_streams(recipe);
  draws_random_numbers(recipe);
}
void checkpoints(Recipe& recipe) {
  without_late_writes(recipe);
  recipe.segments = true;
}
void nested_checkpoints(Recipe& recipe) {
  recipe.derivatives = 1;
  recipe.segments = true;
  without_late_writes(recipe);
  without_side_streams(recipe);
  for (verify::Layer& layer : recipe.layers) layer.segment |= verify::kReentrantBit;
}

constexpr std::string_view kOrder = "happens-before";

constexpr std::array kSchedulers = {
    SchedulerEntry{
        "torchtune-1860", "torchtune", true,
        "a node's backward returns a view of a restored tensor, whose block is reused under it",
        "PR #1860 (3ca0d309c)", kOrder, "torchtune-1860-fixed",
        made<make_stash, torchtune(Escape::kUnseen)>, escaping_results},
    SchedulerEntry{
        "torchtune-1860-fixed", "torchtune", false,
        "record_stream where a result shares the restored storage (no recomputes: see 1936)",
        "PR #1860", "", "", made<make_stash, torchtune(Escape::kResults)>, escaping_results},
    SchedulerEntry{"torchtune-1936", "torchtune", true,
                   "a recompute saves a view of a restored tensor: no result shows it",
                   "#1867, PR #1936 (9eced211b)", kOrder, "torchtune-fixed",
                   made<make_stash, torchtune(Escape::kResults)>, escaping_saves},
    SchedulerEntry{"torchtune-events", "torchtune", true,
                   "the event of each restored tensor is kept for good", "main, bwd_ev_stash",
                   "leak", "torchtune-fixed", made<make_stash, torchtune(Escape::kCounted, false)>,
                   strict_stash_not_reentrant},
    SchedulerEntry{"torchtune-fixed", "torchtune", false,
                   "record_stream where the use count grew; an event goes with its tensor",
                   "PR #1936", "", "", made<make_stash, torchtune(Escape::kCounted)>,
                   strict_stash_not_reentrant},
    SchedulerEntry{"torchtune-backwards", "torchtune", true,
                   "a second backward without a pack between: what it restored is not released",
                   "main", "leak", "", made<make_stash, torchtune(Escape::kCounted)>,
                   backward_behind_backward},
    SchedulerEntry{"torchtune-failure", "torchtune", true,
                   "a backward fails: what it did not unpack makes every later forward fail",
                   "main", "error", "torchtune-failure-fixed",
                   made<make_stash, torchtune(Escape::kCounted)>, failing_backward},
    SchedulerEntry{"torchtune-failure-fixed", "torchtune", false,
                   "the context clears itself, as TRL's does (torchtune's does not)",
                   "TRL PR #5738", "", "", made<make_stash, trl(Clone::kNever, Share::kNever)>,
                   failing_backward},
    SchedulerEntry{"trl-4280", "TRL", true,
                   "a pack in backward, a reentrant recompute's, is taken for the next forward",
                   "#4280 (11fa70c)", "error", "trl-4280-fixed",
                   made<make_stash, trl_of_2025(Forward::kAfterUnpack)>, reentrant},
    SchedulerEntry{"trl-4280-fixed", "TRL", false,
                   "a forward begins when everything is unpacked (nothing unused: see 5730)",
                   "PR #4236 (803ec0d85)", "", "",
                   made<make_stash, trl_of_2025(Forward::kAfterLast)>, reentrant},
    SchedulerEntry{"trl-5730", "TRL", true,
                   "saved tensors that no backward comes to stay in the tracker, and the next "
                   "steps' with them",
                   "#5730, #5737", "leak", "trl-5730-fixed",
                   made<make_stash, trl_of_2025(Forward::kAfterLast)>, dead_branches},
    SchedulerEntry{"trl-5730-fixed", "TRL", false,
                   "entering the context drops what is left (one forward at a time: see enter)",
                   "PR #5738", "", "", made<make_stash, trl(Clone::kNever, Share::kNever)>,
                   one_stash},
    SchedulerEntry{"trl-enter", "TRL", true,
                   "a second forward before the first one's backward numbers its tensors alike",
                   "f2cd577, __enter__", "value", "trl-enter-fixed",
                   made<make_stash, trl(Clone::kNever, Share::kNever)>, forward_ahead},
    SchedulerEntry{
        "trl-enter-fixed", "TRL", false,
        "numbers go on, and what is left goes at the step's end (no fix is published)", "", "", "",
        made<make_stash, trl(Clone::kNever, Share::kNever, Compute::kFirst, Enter::kKeeps)>,
        forwards_before_backwards},
    SchedulerEntry{
        "trl-6241", "TRL", true,
        "a freed storage's key stays: what is saved at its address is taken for it, and kept",
        "#6241", "moves", "trl-6241-fixed",
        made<make_stash, trl(Clone::kNever, Share::kRemembered)>, without_views, nullptr, true},
    SchedulerEntry{"trl-6241-fixed", "TRL", false,
                   "the key goes with the source (no clones: see clone-key)", "#6241 (c26ba8789)",
                   "", "", made<make_stash, trl(Clone::kNever)>, without_views, nullptr, true},
    SchedulerEntry{"trl-clone-key", "TRL", true,
                   "the key is the original's, but a clone of it is held: the same false match",
                   "f2cd577", "moves", "", made<make_stash, trl(Clone::kOnCompute)>, small_views,
                   nullptr, true},
    SchedulerEntry{
        "trl-5694", "TRL", true,
        "a contiguous view's copy begins with the view, and is read at the view's offset",
        "main before PR #5694", "error", "trl-7195-fixed", made<make_stash, trl_with_offsets()>,
        small_views},
    SchedulerEntry{
        "trl-7195", "TRL", true,
        "a view is cloned on the copy stream: its original, and the clone twice, unordered",
        "PR #5694 (25e294c4d)", kOrder, "trl-7195-fixed",
        made<make_stash, trl(Clone::kOnCopyStream)>, one_stash},
    SchedulerEntry{"trl-7195-fixed", "TRL", false,
                   "the clone is made on the computing stream, before the copy stream waits",
                   "PR #7195", "", "", made<make_stash, trl(Clone::kOnCompute)>, one_stash},
    SchedulerEntry{
        "trl-default-stream", "TRL", true, "the default stream is taken for the one that computes",
        "f2cd577, l. 160", kOrder, "trl-current-stream-fixed",
        made<make_stash, trl(Clone::kOnCompute, Share::kForgotten, Compute::kFirst)>, side_streams},
    SchedulerEntry{
        "trl-current-stream", "TRL", true,
        "the current stream waits for the copy, but the source goes back to another one's pool",
        "PR #7195, idea", kOrder, "trl-current-stream-fixed",
        made<make_stash, trl(Clone::kOnCompute, Share::kForgotten, Compute::kCurrent)>,
        side_streams},
    SchedulerEntry{"trl-current-stream-fixed", "TRL", false,
                   "the stream of the source's pool waits (no fix is published)", "", "", "",
                   made<make_stash, trl(Clone::kOnCompute, Share::kForgotten, Compute::kOwner)>,
                   side_streams},
    SchedulerEntry{"trl-second-backward", "TRL", true,
                   "retain_graph: a number is good for one unpack", "f2cd577", "error", "",
                   made<make_stash, trl(Clone::kOnCompute)>, second_backward},
    SchedulerEntry{"save-on-cpu-106360", "save_on_cpu", true,
                   "on a second stream: a restored block is reused while the node reads it",
                   "pytorch #106360", kOrder, "save-on-cpu-106360-fixed",
                   made<make_save_on_cpu, SaveOnCpuPolicy{.records_use = false}>,
                   without_late_writes},
    SchedulerEntry{"save-on-cpu-106360-fixed", "save_on_cpu", false,
                   "record_stream of what is restored", "pytorch #106360", "", "",
                   made<make_save_on_cpu, SaveOnCpuPolicy{}>, without_late_writes},
    SchedulerEntry{"megatron-7398", "Megatron-Core", true,
                   "a reload that was not begun ahead does not wait for its own offload",
                   "#7398, PR #7399", kOrder, "megatron-fixed",
                   made<make_megatron, MegatronPolicy{.inline_reload_waits = false}>, groups},
    SchedulerEntry{"megatron-pool", "Megatron-Core", true,
                   "a pinned buffer is free again while the copy out of it runs", "main, reload()",
                   kOrder, "megatron-fixed",
                   made<make_megatron, MegatronPolicy{.pool_waits = false}>, groups_ahead},
    SchedulerEntry{"megatron-fixed", "Megatron-Core", false,
                   "a reload follows its offload; a buffer's next offload follows the reload",
                   "PR #7399; the pool: no fix is published", "", "",
                   made<make_megatron, MegatronPolicy{}>, groups},
    SchedulerEntry{"torchtitan-2581", "torchtitan", true,
                   "the copy stream waits for the current stream where it is that itself",
                   "PR #2581", kOrder, "torchtitan-2581-fixed",
                   made<make_torchtitan, TorchtitanPolicy{.waits_for_compute = false}>, slots},
    SchedulerEntry{"torchtitan-2581-fixed", "torchtitan", false,
                   "the computing stream is read before the copy stream becomes current",
                   "PR #2581", "", "", made<make_torchtitan, TorchtitanPolicy{}>, slots},
    SchedulerEntry{
        "transformer-engine-unused", "TransformerEngine", true,
        "what was reloaded and never used is freed while the copy into it runs",
        "main, release_all_memory", kOrder, "transformer-engine-unused-fixed",
        made<make_transformer_engine, TransformerEnginePolicy{.waits_for_unused = false}>,
        unused_groups},
    SchedulerEntry{"transformer-engine-unused-fixed", "TransformerEngine", false,
                   "the computing stream waits for it first (no fix is published)", "", "", "",
                   made<make_transformer_engine, TransformerEnginePolicy{}>, groups_in_turn},
    SchedulerEntry{"verl-layouts", "verl", true,
                   "saves at one address are taken for one, whatever their shapes and strides",
                   "main; ms-swift alike", "value", "verl-layouts-fixed",
                   made<make_verl, VerlPolicy{.key_has_layout = false}>, nullptr, layouts_program},
    SchedulerEntry{"verl-layouts-fixed", "verl", false,
                   "shape and strides are part of the key (no fix is published)", "", "", "",
                   made<make_verl, VerlPolicy{}>, nullptr, layouts_program},
    SchedulerEntry{
        "unsloth-nested", "Unsloth", true,
        "a checkpoint inside a recompute numbers from 0: it writes what the first one saved",
        "main, CPU_INDEX", "value", "unsloth-nested-fixed",
        made<make_unsloth, UnslothPolicy{.restarts = true}>, nested_checkpoints},
    SchedulerEntry{"unsloth-nested-fixed", "Unsloth", false,
                   "the first buffer that is free (no fix is published)", "", "", "",
                   made<make_unsloth, UnslothPolicy{}>, nested_checkpoints},
    SchedulerEntry{"deepspeed-empty-input", "DeepSpeed", true,
                   "a checkpoint's input is emptied before the forward that reads it",
                   "9e455d765 to 858e91eea", "lifetime", "deepspeed-empty-input-fixed",
                   made<make_cpu_checkpointing, CpuCheckpointingPolicy{.empties_inputs = true}>,
                   checkpoints},
    SchedulerEntry{"deepspeed-empty-input-fixed", "DeepSpeed", false,
                   "the caller's tensor is left alone", "858e91eea", "", "",
                   made<make_cpu_checkpointing, CpuCheckpointingPolicy{}>, checkpoints},
    SchedulerEntry{
        "deepspeed-static-buffer", "DeepSpeed", true,
        "DeepCompile: a value has one host buffer: a second forward before the backward writes it",
        "main", "value", "deepspeed-static-buffer-fixed",
        made<make_deep_compile, DeepCompilePolicy{.buffer_per_value = true}>, forwards_ahead},
    SchedulerEntry{"deepspeed-static-buffer-fixed", "DeepSpeed", false,
                   "a buffer for each save (no fix is published)", "", "", "",
                   made<make_deep_compile, DeepCompilePolicy{}>, forwards_ahead},
};

}  // namespace

std::span<const SchedulerEntry> schedulers() { return kSchedulers; }

const SchedulerEntry* find_scheduler(std::string_view name) {
  const auto found = std::find_if(kSchedulers.begin(), kSchedulers.end(),
                                  [&](const SchedulerEntry& each) { return each.name == name; });
  return found == kSchedulers.end() ? nullptr : &*found;
}

}  // namespace ferry::sim
