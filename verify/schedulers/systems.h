// The schedulers of other systems, on which the oracles are tried (registry.h). Each has a policy
// that says what is wrong with it; the default policy is right.
//
// They copy published behaviour only; the registry names the sources. What a system does apart from
// its fault is included if the fault depends on it. Common to all: a copy keeps the strides of a
// view, and page-locked memory goes back to the host pool with an event, so that the pool waits for
// running copies, as PyTorch's does. (ferry verify simulates Ferry's pool.) A policy may differ.
#pragma once

#include <memory>

#include "sim/field/copies.h"
#include "sim/field/stash.h"
#include "sim/gpu/device.h"
#include "sim/program/autograd.h"
#include "sim/run/training/adapted.h"
#include "sim/run/training/scheduler.h"

namespace ferry::verify::schedulers {

// Building blocks, which torchtune's and TRL's schedulers also use.
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
  bool records_use = true;  // record_stream for a restored tensor, on the stream that uses it
};
std::unique_ptr<sim::Scheduler> make_save_on_cpu(sim::SimDevice device, sim::SimAutograd autograd,
                                                 SaveOnCpuPolicy policy);

// Megatron-Core's fine-grained offloading: groups of saves, two copy streams, its own page-locked
// pool.
struct MegatronPolicy {
  bool inline_reload_waits = true;  // a reload without prefetch waits for its own offload
  bool pool_waits = true;           // the next offload to a buffer waits for the reload from it
};
std::unique_ptr<sim::Scheduler> make_megatron(sim::SimDevice device, sim::SimAutograd autograd,
                                              MegatronPolicy policy);

// torchtitan's offloading, with a slab of host slots that every step uses again.
struct TorchtitanPolicy {
  bool waits_for_compute = true;  // the copy stream waits for the compute stream; false: for itself
};
std::unique_ptr<sim::Scheduler> make_torchtitan(sim::SimDevice device, sim::SimAutograd autograd,
                                                TorchtitanPolicy policy);

// TransformerEngine's offloading, layer by layer.
struct TransformerEnginePolicy {
  bool waits_for_unused = true;  // waits before an unused reloaded tensor is dropped
};
std::unique_ptr<sim::Scheduler> make_transformer_engine(sim::SimDevice device,
                                                        sim::SimAutograd autograd,
                                                        TransformerEnginePolicy policy);

// verl's offloading, group by group.
struct VerlPolicy {
  bool key_has_layout = true;  // saves share a copy only if shapes and strides agree
};
std::unique_ptr<sim::Scheduler> make_verl(sim::SimDevice device, sim::SimAutograd autograd,
                                          VerlPolicy policy);

// Unsloth's gradient checkpointing: inputs of checkpoints go to numbered host buffers.
struct UnslothPolicy {
  bool restarts = false;  // after a backward begins, the next forward numbers from 0
};
std::unique_ptr<sim::Scheduler> make_unsloth(sim::SimDevice device, sim::SimAutograd autograd,
                                             UnslothPolicy policy);

// DeepSpeed's activation checkpointing with cpu_checkpointing.
struct CpuCheckpointingPolicy {
  bool empties_inputs = false;  // empties the caller's tensors once their copies are issued
};
std::unique_ptr<sim::Scheduler> make_cpu_checkpointing(sim::SimDevice device,
                                                       sim::SimAutograd autograd,
                                                       CpuCheckpointingPolicy policy);

// DeepSpeed's DeepCompile: offloading by a compiled graph.
struct DeepCompilePolicy {
  bool buffer_per_value = false;  // one buffer for all runs of the graph; false: one for each save
};
std::unique_ptr<sim::Scheduler> make_deep_compile(sim::SimDevice device, sim::SimAutograd autograd,
                                                  DeepCompilePolicy policy);

}  // namespace ferry::verify::schedulers
