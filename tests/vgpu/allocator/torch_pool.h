// PyTorch's own caching allocator on the virtual CUDA runtime: what sim's is held against.
//
// Work runs when a stream is finished and not before, so a block in use elsewhere is free when the
// test says so; cudaFree and an unmap wait for the device. One at a time: the allocator is the
// process's. It begins empty, with options of its own.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "formats/memory_snapshot.h"

namespace ferry::vgpu {

struct TorchFigures {
  std::int64_t allocated_bytes = 0, allocated_peak = 0;
  std::int64_t active_bytes = 0, active_peak = 0;
  std::int64_t requested_bytes = 0, requested_peak = 0;
  std::int64_t reserved_bytes = 0, reserved_peak = 0;
  std::int64_t num_alloc_retries = 0, num_ooms = 0, num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0, num_device_free = 0;
  bool operator==(const TorchFigures&) const = default;
};

class TorchPool {
 public:
  static constexpr std::int64_t kTotalBytes = std::int64_t{256} << 20;  // LibTorch asks once
  static constexpr std::uint32_t kStreams = 4;

  // `conf` as in PYTORCH_CUDA_ALLOC_CONF. The fraction is set by a call, as programs may.
  TorchPool(const std::string& conf, double fraction, std::int64_t context_bytes);
  TorchPool(const TorchPool&) = delete;
  TorchPool& operator=(const TorchPool&) = delete;
  ~TorchPool();  // nothing is left

  // Null: out of memory, of which out_of_memory() says more. Streams go up with their numbers.
  void* allocate(std::int64_t bytes, std::uint32_t stream);
  void free(void* block);
  void record_use(void* block, std::uint32_t stream);
  void finish(std::uint32_t stream);
  void empty_cache();

  const std::string& out_of_memory() const { return out_of_memory_; }
  TorchFigures figures() const;
  // Since the last call: what it did, and where addresses for expandable segments were reserved.
  std::vector<MemoryEvent> take_trace();
  std::deque<std::uint64_t> take_reservations();

 private:
  std::vector<void*> live_;
  std::string out_of_memory_;
};

// Applies settings: what AcceleratorAllocatorConfig has then, or PyTorch's refusal.
struct TorchConf {
  std::optional<std::string> refused;
  AllocConf conf;  // without the fraction
};
TorchConf torch_conf(const std::string& text);

// Whether PyTorch has the option large_segment_size_mb; before, it was 20.
inline constexpr bool kHasLargeSegments = TORCH_VERSION_MINOR >= 11;

}  // namespace ferry::vgpu
