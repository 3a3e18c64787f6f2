// What a device's memory is used for, in the words of PyTorch's memory profiler.
//
// A block is of one kind at a time. One that an operator made is temporary until autograd saves it
// (then an activation, for as long as it lives) or a leaf takes it over as its gradient. Where the
// bytes of all kinds are counted, they are those of the pool's blocks, so that they add up to what
// the pool calls allocated. Source: torch/profiler/_memory_profiler.py (Category).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

namespace ferry::sim {

enum class MemoryKind : std::uint8_t {
  kParameter,
  kBuffer,
  kInput,
  kGradient,
  kOptimizer,   // the optimizer's state
  kWorkspace,   // of libraries, kept for good
  kActivation,  // saved for backward
  kTemporary,   // all else: outputs, gradients on their way, what kernels take while they run
};
inline constexpr std::size_t kMemoryKinds = 8;

// As JSON and CSV have them.
inline constexpr std::array<std::string_view, kMemoryKinds> kMemoryKindNames = {
    "parameters", "buffers",    "inputs",      "gradients",
    "optimizer",  "workspaces", "activations", "temporaries"};

struct KindBytes {
  std::array<std::int64_t, kMemoryKinds> of{};

  std::int64_t& operator[](MemoryKind kind) { return of[static_cast<std::size_t>(kind)]; }
  std::int64_t operator[](MemoryKind kind) const { return of[static_cast<std::size_t>(kind)]; }
  std::int64_t sum() const { return std::accumulate(of.begin(), of.end(), std::int64_t{0}); }
  bool operator==(const KindBytes&) const = default;
};

}  // namespace ferry::sim
