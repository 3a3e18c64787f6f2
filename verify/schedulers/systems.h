// The schedulers, by system: what can be wrong with each, as a policy whose default is right.
//
// Behaviour only, as published (the registry names the sources); what a system does beside its bug
// is there where it bears on it. Common to all: copies keep a view's strides, and pinned memory is
// PyTorch's, whose pool waits for copies under way, unless a policy says otherwise.
#pragma once

#include <memory>

#include "sim/field/copies.h"
#include "sim/field/stash.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/adapted.h"
#include "sim/run/training/scheduler.h"

namespace ferry::verify::schedulers {

// What they are made of, and torchtune's and TRL's.
using field::bytes_of;
using field::first_bytes;
using field::give_back;
using field::HostCopy;
using field::make_stash;
using field::offload;
using field::offload_to;
using field::order;
using field::pinned;
using field::reload;
using field::StashPolicy;

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
