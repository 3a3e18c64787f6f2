// "CUDA out of memory. ...", in PyTorch's words (malloc of c10/cuda/CUDACachingAllocator.cpp,
// 2.11). Where PyTorch adds what NVML says of processes, this says nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace ferry::sim {

// All in bytes.
struct MemoryFigures {
  std::int64_t requested = 0;
  std::int64_t segment = 0;  // what the message names: the segment that the request would get
  std::int64_t total = 0;
  std::int64_t free = 0;                // of the device's
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

// What PyTorch's format_size makes of it, "1024.00 KiB". Ferry's own reports say format_bytes
// (scenarios/units.h).
std::string pytorch_size(std::int64_t bytes);

}  // namespace ferry::sim
