#include "sim/gpu/out_of_memory.h"

#include <array>
#include <cstdio>

namespace ferry::sim {
namespace {

std::string message(std::uint32_t device, const MemoryFigures& figures) {
  return "CUDA out of memory. Tried to allocate " + pytorch_size(figures.segment) + ". GPU " +
         std::to_string(device) + " has a total capacity of " + pytorch_size(figures.total) +
         " of which " + pytorch_size(figures.free) + " is free. " +
         (figures.allowed ? pytorch_size(*figures.allowed) + " allowed; " : "") +
         "Of the allocated memory " + pytorch_size(figures.allocated) +
         " is allocated by PyTorch, and " + pytorch_size(figures.reserved - figures.allocated) +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
         "setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
         "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
         "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
}

}  // namespace

std::string pytorch_size(std::int64_t bytes) {
  if (bytes <= 1024) return std::to_string(bytes) + " bytes";
  constexpr std::array<const char*, 3> kUnits = {"KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; unit < 2 && value > 1024; ++unit) value /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s", value, kUnits[unit]);
  return text.data();
}

OutOfMemory::OutOfMemory(std::uint32_t device, const MemoryFigures& figures)
    : std::runtime_error(message(device, figures)),
      requested_bytes(figures.requested),
      segment_bytes(figures.segment),
      total_bytes(figures.total),
      free_bytes(figures.free),
      allocated_bytes(figures.allocated),
      reserved_bytes(figures.reserved) {}

}  // namespace ferry::sim
