// The error "CUDA out of memory. ...", in PyTorch's words (malloc of
// c10/cuda/CUDACachingAllocator.cpp, 2.11), so that a simulated failure reads like a real one.
// PyTorch may also add what NVML knows of processes; this does not.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace ferry::sim {

// All are in bytes.
struct MemoryFigures {
  std::int64_t requested = 0;
  std::int64_t segment = 0;  // the segment that the request would need, which the message names
  std::int64_t total = 0;
  std::int64_t free = 0;                // free on the device
  std::optional<std::int64_t> allowed;  // by per_process_memory_fraction
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
};

struct OutOfMemory : std::runtime_error {
  OutOfMemory(std::uint32_t device, const MemoryFigures& figures);
  std::int64_t requested_bytes;
  std::int64_t segment_bytes;
  std::int64_t total_bytes;
  std::int64_t free_bytes;
  std::int64_t allocated_bytes;
  std::int64_t reserved_bytes;
};

// Formats bytes as PyTorch's format_size does: "1024.00 KiB". Ferry's own reports use format_bytes
// (scenarios/units.h).
std::string pytorch_size(std::int64_t bytes);

}  // namespace ferry::sim
