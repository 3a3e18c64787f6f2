// What a step computes where everything is kept: its kernels in order, and which bytes of which
// storage each of them reads. It says what any plan must compute and, kernel by kernel, what must
// be in memory then (lower_bound.h). When a storage is freed depends on the plan: `freed` is when
// keep does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// The half-open bytes [begin, end) of a storage, which a kernel reads or writes.
struct StorageUse {
  std::uint32_t kernel = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool reads = true;  // or it writes to them alone
};

struct TracedKernel {
  sim::Time ns = 0;
  bool forward = false;  // no backward ran it
  bool sum = false;      // autograd adds gradients that meet
};

struct TracedStorage {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
  std::int64_t block_bytes = 0;   // of memory, at least
  std::uint32_t maker = kNobody;  // the first kernel that wrote to it
  bool gradient = false;          // a global's gradient when the step ends
  std::uint32_t freed = kNobody;  // kernels before it was given back
  std::vector<StorageUse> uses;   // in order
};

// A tensor that hooks see in the first forward, in order: as a survey has them.
struct TracedPack {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};
  std::uint32_t storage = TracedStorage::kNobody;  // that it is of; nobody: there before the step
  std::uint32_t kernels = 0;                       // of the step, before it was saved
  std::uint32_t unpacked = kNever;                 // kernels before it was unpacked first
};

struct KeepTrace {
  // Kernels that every plan runs. (A gradient may or may not be cloned: clones are not among them.)
  std::vector<TracedKernel> kernels;
  std::vector<TracedStorage> storages;  // those made in the step
  std::vector<TracedPack> packs;
  std::int64_t held_bytes = 0;  // globals, the optimizer's state and workspaces, throughout
  // Of the parameters that got a gradient: a tensor for each of an optimizer's state is as large.
  std::int64_t trained_bytes = 0;
  std::int64_t trained_alike_bytes = 0;  // of those of one dtype, of which there are the most
  bool fails = false;                    // the step ends in an error
  // Of the optimizer's own step, which follows in every plan: what its kernels take, one after the
  // other, and what is in memory then.
  sim::Time optimizer_ns = 0;
  std::int64_t optimizer_bytes = 0;
};

// Of a step without an optimizer's state, or with what a prepared step has of `optimizer`'s.
KeepTrace trace_keep(const Program& program, const Hardware& hardware,
                     sim::Optimizer optimizer = sim::Optimizer::kNoOptimizer);

// Of the last step of a training, whose optimizer's kernels take so long.
KeepTrace trace_training(const Program& program, const Hardware& hardware,
                         const sim::Training& training, sim::Time optimizer_ns);

}  // namespace ferry::plan
