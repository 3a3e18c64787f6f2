// The trace of one step that keeps every saved tensor: its kernels in order, and which bytes of
// which storage each kernel reads and writes. Every plan runs these kernels, so the lower bound
// (lower_bound.h) and the models of the search (span_model.h, moves.h) are built on the trace. When
// a storage is freed depends on the plan: `freed` says after how many kernels keep frees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// A kernel reads or writes the bytes [begin, end) of a storage.
struct StorageUse {
  std::uint32_t kernel = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool reads = true;  // false: it only writes
};

struct TracedKernel {
  sim::Time ns = 0;
  bool forward = false;  // it does not belong to a backward
  bool sum = false;      // autograd's addition of two gradients
};

struct TracedStorage {
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};  // no kernel, or no storage
  std::int64_t block_bytes = 0;   // the size of its block is at least this
  std::uint32_t maker = kNobody;  // the first kernel that wrote to it
  bool gradient = false;          // it is a global's gradient when the step ends
  std::uint32_t freed = kNobody;  // number of kernels before it was freed
  std::vector<StorageUse> uses;   // in order
};

// A tensor that the first forward saves. The trace and a survey list them in the same order.
struct TracedPack {
  static constexpr std::uint32_t kNever = ~std::uint32_t{0};  // it was not unpacked
  std::uint32_t storage = TracedStorage::kNobody;  // its storage; kNobody: older than the step
  std::uint32_t kernels = 0;                       // number of kernels before it was saved
  std::uint32_t unpacked = kNever;                 // number of kernels before its first unpack
};

struct KeepTrace {
  // Kernels that every plan runs. Clones of gradients are left out: they depend on the plan.
  std::vector<TracedKernel> kernels;
  std::vector<TracedStorage> storages;  // the storages made in the step
  std::vector<TracedPack> packs;
  std::int64_t held_bytes = 0;  // globals, optimizer state and workspaces: in memory throughout
  // The parameters that got a gradient. Each tensor of an optimizer's state has the same size.
  std::int64_t trained_bytes = 0;
  std::int64_t trained_alike_bytes = 0;  // the same for the dtype that has the most bytes
  bool fails = false;                    // the step ends in an error
  // The optimizer's own step, which follows in every plan: the sum of its kernels' times, and the
  // bytes in memory then.
  sim::Time optimizer_ns = 0;
  std::int64_t optimizer_bytes = 0;
};

// Traces one step. Its memory includes the state of `optimizer`. Without `keeps_gradients`, a
// gradient is dropped when it has been accumulated, as after an update in backward.
KeepTrace trace_keep(const Program& program, const Hardware& hardware,
                     sim::Optimizer optimizer = sim::Optimizer::kNoOptimizer,
                     bool keeps_gradients = true);

// Traces the last step of a training. `optimizer_ns` is the sum of its optimizer's kernel times.
KeepTrace trace_training(const Program& program, const Hardware& hardware,
                         const sim::Training& training, sim::Time optimizer_ns);

}  // namespace ferry::plan
