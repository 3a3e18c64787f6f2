// The schedulers, by system: what can be wrong with each, as a policy whose default is right.
//
// Behaviour only, as published (the registry names the sources); what a system does beside its bug
// is there where it bears on it. Common to all: copies keep a view's strides, and pinned memory is
// PyTorch's, whose pool waits for copies under way, unless a policy says otherwise.
#pragma once

#include <memory>

#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/scheduler.h"

namespace ferry::verify::schedulers {

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
};
std::unique_ptr<sim::Scheduler> make_stash(sim::SimDevice device, sim::SimAutograd autograd,
                                           StashPolicy policy);

// torch.autograd.graph.save_on_cpu on a second stream.
struct SaveOnCpuPolicy {
  bool records_use = true;  // of what came back, on the stream that uses it
};
std::unique_ptr<sim::Scheduler> make_save_on_cpu(sim::SimDevice device, sim::SimAutograd autograd,
                                                 SaveOnCpuPolicy policy);

// Megatron-Core's fine-grained offloading: groups, two copy streams, a pinned pool of its own.
struct MegatronPolicy {
  bool inline_reload_waits = true;  // one that was not begun ahead follows its own offload
  bool pool_waits = true;           // a buffer's next offload follows the reload out of it
};
std::unique_ptr<sim::Scheduler> make_megatron(sim::SimDevice device, sim::SimAutograd autograd,
                                              MegatronPolicy policy);

// torchtitan's offloading with a slab of host slots that every step uses again.
struct TorchtitanPolicy {
  bool waits_for_compute = true;  // the copy stream; else for itself
};
std::unique_ptr<sim::Scheduler> make_torchtitan(sim::SimDevice device, sim::SimAutograd autograd,
                                                TorchtitanPolicy policy);

// TransformerEngine's layer-wise offloading.
struct TransformerEnginePolicy {
  bool waits_for_unused = true;  // before what was reloaded and never used is dropped
};
std::unique_ptr<sim::Scheduler> make_transformer_engine(sim::SimDevice device,
                                                        sim::SimAutograd autograd,
                                                        TransformerEnginePolicy policy);

// verl's group-wise offloading.
struct VerlPolicy {
  bool key_has_layout = true;  // saves are one where their shapes and strides are, too
};
std::unique_ptr<sim::Scheduler> make_verl(sim::SimDevice device, sim::SimAutograd autograd,
                                          VerlPolicy policy);

// Unsloth's gradient checkpointing: the inputs of checkpoints, in numbered host buffers.
struct UnslothPolicy {
  bool restarts = false;  // the first forward after a backward began numbers from 0
};
std::unique_ptr<sim::Scheduler> make_unsloth(sim::SimDevice device, sim::SimAutograd autograd,
                                             UnslothPolicy policy);

// DeepSpeed's activation checkpointing with cpu_checkpointing.
struct CpuCheckpointingPolicy {
  bool empties_inputs = false;  // the caller's tensors, as soon as their copies are under way
};
std::unique_ptr<sim::Scheduler> make_cpu_checkpointing(sim::SimDevice device,
                                                       sim::SimAutograd autograd,
                                                       CpuCheckpointingPolicy policy);

// DeepSpeed's DeepCompile: offloading by a compiled graph.
struct DeepCompilePolicy {
  bool buffer_per_value = false;  // one for all runs of the graph; else one for each save
};
std::unique_ptr<sim::Scheduler> make_deep_compile(sim::SimDevice device, sim::SimAutograd autograd,
                                                  DeepCompilePolicy policy);

}  // namespace ferry::verify::schedulers
