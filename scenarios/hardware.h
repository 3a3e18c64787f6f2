// A GPU and its host, as scenarios/hardware/*.toml describe them.
//
// Rates are integers: bytes or floating-point operations per microsecond (1000 bytes per
// microsecond are 1 GB/s). So every duration is exact integer arithmetic. Peaks are the dense
// figures of the data sheets; `matmul_percent`, `attention_percent` and `memory_percent` say what
// share of them kernels reach. The link has four rates, because the two directions slow each other
// down differently when both are busy. Optional: [peer], the links between several GPUs, and
// [port], the PCIe root port that GPUs share (a single GPU has its port alone, and the rates of the
// link are measured through it); `cost`, the price per hour, for `ferry sweep`; and `l2` and
// `l2_rate`, the L2 cache, which no shipped card states (docs/explanation/times.md). Clocks that
// fall under load are not modelled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/program.h"
#include "scenarios/paths.h"

namespace ferry {

// The units that compute on a dtype: fp8; bf16 and fp16; fp32 (TF32 if it exists); fp64.
enum class ComputeClass : std::uint8_t { kFp8, kHalf, kFp32, kFp64 };
inline constexpr std::size_t kComputeClasses = 4;

ComputeClass compute_class(DType dtype);  // integers and bool count as fp32

struct Link {
  std::int64_t h2d_alone = 0;  // bytes per microsecond, as all rates below
  std::int64_t d2h_alone = 0;
  std::int64_t h2d_both = 0;  // while the other direction is busy
  std::int64_t d2h_both = 0;
  std::int64_t latency_ns = 0;
  std::int64_t pageable_h2d = 0;  // for memory that is not pinned: the driver copies it first
  std::int64_t pageable_d2h = 0;
};

// A link like NVLink to every other GPU. The rate is per direction; all transfers share it.
struct PeerLink {
  std::int64_t bytes_per_us = 0;  // 0: there is no such link; copies between GPUs cross PCIe
  std::int64_t latency_ns = 0;
};

struct RootPort {
  std::int64_t devices = 0;          // GPUs on one port; 0: each GPU has its own
  std::int64_t up_bytes_per_us = 0;  // towards the host, shared by all GPUs of the port
  std::int64_t down_bytes_per_us = 0;
};

// The rates that the CPU's own operators reach, all threads together.
struct HostRates {
  std::int64_t memory_bytes_per_us = 0;  // read and written; 0: not known
  std::int64_t flops_per_us = 0;         // matrix products in single precision
};

struct Hardware {
  std::string name;  // the file's name
  std::string description;
  std::int64_t compute_capability = 0;  // CUDA's, times ten; libraries choose by it; 0: not known
  std::int64_t multiprocessors = 0;     // 0: not known
  std::int64_t memory_bytes = 0;        // device memory in the data sheet
  std::int64_t capacity_bytes = 0;      // device memory that PyTorch reports; else memory_bytes
  std::int64_t context_bytes = 0;       // taken by CUDA's context and libraries of a process
  std::int64_t host_memory_bytes = 0;   // host memory that can be pinned
  std::array<std::int64_t, kComputeClasses> flops_per_us{};
  std::int64_t memory_bytes_per_us = 0;
  std::int64_t matmul_percent = 100;
  std::int64_t attention_percent = 100;  // share of the same peak that attention kernels reach
  std::int64_t memory_percent = 100;
  std::int64_t l2_bytes = 0;          // 0: no cache is modelled
  std::int64_t l2_bytes_per_us = 0;   // rate at which kernels read the cache
  std::int64_t kernel_min_ns = 0;     // the shortest kernel
  std::int64_t launch_ns = 0;         // host time to issue a kernel
  std::int64_t pin_bytes_per_us = 0;  // rate of cudaHostAlloc on the host; 0: not known
  Link link;
  PeerLink peer{};
  RootPort port{};
  HostRates host{};
  std::int64_t cost_per_hour = 0;  // price in thousandths; all card files use one currency

  // Device memory for tensors and workspaces.
  std::int64_t usable_bytes() const { return capacity_bytes - context_bytes; }
  std::int64_t flops_per_us_of(DType dtype) const {
    return flops_per_us[static_cast<std::size_t>(compute_class(dtype))];
  }
};

Hardware parse_hardware(std::string_view text, const std::string& file);
Hardware read_hardware(const std::filesystem::path& path);
Hardware find_hardware(const std::string& name_or_path);
// Returns the shipped cards, sorted by name. For a file that cannot be read, calls `unreadable`
// with the error, and goes on.
std::vector<Hardware> list_hardware(const Unreadable& unreadable);

}  // namespace ferry
