// The uses of device memory, in the words of PyTorch's memory profiler.
//
// A block has one kind at a time. A block that an operator made is temporary until autograd saves
// it (then it is an activation as long as it lives) or a leaf takes it as its gradient. The bytes
// of a kind are those of the pool's blocks, so all kinds add up to the pool's allocated bytes.
// Source: torch/profiler/_memory_profiler.py (Category).
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
  kWorkspace,   // of libraries; never freed
  kActivation,  // saved for backward
  kTemporary,   // all else: outputs, gradients on their way, memory of running kernels
};
inline constexpr std::size_t kMemoryKinds = 8;

// The names in JSON and CSV.
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
