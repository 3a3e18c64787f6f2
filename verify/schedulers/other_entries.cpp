// The entries of the registry (registry.h) for all systems except torchtune and TRL. Each limit
// removes from random steps what the system does not support, and may add what its fault needs.
#include "verify/schedulers/entries.h"

#include <algorithm>

#include "verify/hunted/limits.h"
#include "verify/schedulers/programs.h"

namespace ferry::verify::schedulers {
namespace {

template <auto kMake, auto kPolicy>
std::unique_ptr<sim::Scheduler> made(sim::SimDevice device, sim::SimAutograd autograd) {
  return kMake(device, autograd, kPolicy);
}

// For schedulers whose groups come back as a whole: each save is popped at most once, and is not
// written before that.
void groups(Recipe& recipe) {
  one_unpack(recipe);
  without(recipe, {LayerKind::kWrittenBetween});
  without_failures(recipe);
  without_side_streams(recipe);
}
void groups_ahead(Recipe& recipe) {
  groups(recipe);
  recipe.order = MicrobatchOrder::kOneForwardOneBackward;
  recipe.microbatches = 3;
  one_size(recipe);
}
void groups_in_turn(Recipe& recipe) {
  groups(recipe);
  in_turn(recipe);
}
void unused_groups(Recipe& recipe) {
  without(recipe, {LayerKind::kNested, LayerKind::kSideStream}, LayerKind::kDeadBranch);
  groups_in_turn(recipe);
  one_size(recipe);
}
void slots(Recipe& recipe) {
  in_turn(recipe);
  recipe.derivatives = 1;
  without_late_writes(recipe);
  without_side_streams(recipe);
}
void forwards_ahead(Recipe& recipe) {
  recipe.derivatives = 1;
  recipe.order = std::max(recipe.order, MicrobatchOrder::kFfbb);
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
  for (Layer& layer : recipe.layers) layer.segment |= verify::kReentrantBit;
}

constexpr SchedulerEntry kEntries[] = {
    {
        .name = "save-on-cpu-106360",
        .system = "save_on_cpu",
        .faulty = true,
        .what = "on a second stream: a restored block is reused while the node reads it",
        .source = "pytorch #106360",
        .oracle = Oracle::kHappensBefore,
        .fixed = "save-on-cpu-106360-fixed",
        .make = made<make_save_on_cpu, SaveOnCpuPolicy{.records_use = false}>,
        .limit = without_late_writes,
    },
    {
        .name = "save-on-cpu-106360-fixed",
        .system = "save_on_cpu",
        .what = "record_stream for each restored tensor",
        .source = "pytorch #106360",
        .make = made<make_save_on_cpu, SaveOnCpuPolicy{}>,
        .limit = without_late_writes,
    },
    {
        .name = "megatron-7398",
        .system = "Megatron-Core",
        .faulty = true,
        .what = "a reload without prefetch does not wait for its own offload",
        .source = "#7398, PR #7399",
        .oracle = Oracle::kHappensBefore,
        .fixed = "megatron-fixed",
        .make = made<make_megatron, MegatronPolicy{.inline_reload_waits = false}>,
        .limit = groups,
    },
    {
        .name = "megatron-pool",
        .system = "Megatron-Core",
        .faulty = true,
        .what = "a pinned buffer is free again while the copy out of it runs",
        .source = "main, reload()",
        .oracle = Oracle::kHappensBefore,
        .fixed = "megatron-fixed",
        .make = made<make_megatron, MegatronPolicy{.pool_waits = false}>,
        .limit = groups_ahead,
    },
    {
        .name = "megatron-fixed",
        .system = "Megatron-Core",
        .what = "a reload follows its offload; a buffer's next offload follows the reload",
        .source = "PR #7399; the pool: no fix is published",
        .make = made<make_megatron, MegatronPolicy{}>,
        .limit = groups,
    },
    {
        .name = "torchtitan-2581",
        .system = "torchtitan",
        .faulty = true,
        .what = "the copy stream waits for the current stream, which is itself",
        .source = "PR #2581",
        .oracle = Oracle::kHappensBefore,
        .fixed = "torchtitan-2581-fixed",
        .make = made<make_torchtitan, TorchtitanPolicy{.waits_for_compute = false}>,
        .limit = slots,
    },
    {
        .name = "torchtitan-2581-fixed",
        .system = "torchtitan",
        .what = "the compute stream is read before the copy stream becomes current",
        .source = "PR #2581",
        .make = made<make_torchtitan, TorchtitanPolicy{}>,
        .limit = slots,
    },
    {
        .name = "transformer-engine-unused",
        .system = "TransformerEngine",
        .faulty = true,
        .what = "a reloaded tensor that is never used is freed while the copy into it runs",
        .source = "main, release_all_memory",
        .oracle = Oracle::kHappensBefore,
        .fixed = "transformer-engine-unused-fixed",
        .make = made<make_transformer_engine, TransformerEnginePolicy{.waits_for_unused = false}>,
        .limit = unused_groups,
    },
    {
        .name = "transformer-engine-unused-fixed",
        .system = "TransformerEngine",
        .what = "the compute stream waits for it first (no fix is published)",
        .source = "",
        .make = made<make_transformer_engine, TransformerEnginePolicy{}>,
        .limit = groups_in_turn,
    },
    {
        .name = "verl-layouts",
        .system = "verl",
        .faulty = true,
        .what = "saves at one address are taken for one, whatever their shapes and strides",
        .source = "main; ms-swift alike",
        .oracle = Oracle::kValue,
        .fixed = "verl-layouts-fixed",
        .make = made<make_verl, VerlPolicy{.key_has_layout = false}>,
        .program = layouts_program,
    },
    {
        .name = "verl-layouts-fixed",
        .system = "verl",
        .what = "shape and strides are part of the key (no fix is published)",
        .source = "",
        .make = made<make_verl, VerlPolicy{}>,
        .program = layouts_program,
    },
    {
        .name = "unsloth-nested",
        .system = "Unsloth",
        .faulty = true,
        .what = "a checkpoint inside a recompute numbers from 0: it overwrites what the first one "
                "saved",
        .source = "main, CPU_INDEX",
        .oracle = Oracle::kValue,
        .fixed = "unsloth-nested-fixed",
        .make = made<make_unsloth, UnslothPolicy{.restarts = true}>,
        .limit = nested_checkpoints,
    },
    {
        .name = "unsloth-nested-fixed",
        .system = "Unsloth",
        .what = "it takes the first free buffer (no fix is published)",
        .source = "",
        .make = made<make_unsloth, UnslothPolicy{}>,
        .limit = nested_checkpoints,
    },
    {
        .name = "deepspeed-empty-input",
        .system = "DeepSpeed",
        .faulty = true,
        .what = "a checkpoint's input is emptied before the forward that reads it",
        .source = "9e455d765 to 858e91eea",
        .oracle = Oracle::kLifetime,
        .fixed = "deepspeed-empty-input-fixed",
        .make = made<make_cpu_checkpointing, CpuCheckpointingPolicy{.empties_inputs = true}>,
        .limit = checkpoints,
    },
    {
        .name = "deepspeed-empty-input-fixed",
        .system = "DeepSpeed",
        .what = "the caller's tensor is left alone",
        .source = "858e91eea",
        .make = made<make_cpu_checkpointing, CpuCheckpointingPolicy{}>,
        .limit = checkpoints,
    },
    {
        .name = "deepspeed-static-buffer",
        .system = "DeepSpeed",
        .faulty = true,
        .what = "DeepCompile: a value has one host buffer: a second forward before the backward "
                "writes it",
        .source = "main",
        .oracle = Oracle::kValue,
        .fixed = "deepspeed-static-buffer-fixed",
        .make = made<make_deep_compile, DeepCompilePolicy{.buffer_per_value = true}>,
        .limit = forwards_ahead,
    },
    {
        .name = "deepspeed-static-buffer-fixed",
        .system = "DeepSpeed",
        .what = "each save has its own buffer (no fix is published)",
        .source = "",
        .make = made<make_deep_compile, DeepCompilePolicy{}>,
        .limit = forwards_ahead,
    },
};

}  // namespace

std::span<const SchedulerEntry> other_entries() { return kEntries; }

}  // namespace ferry::verify::schedulers
