// A GPU and its host, as scenarios/hardware/*.toml describe them.
//
// Rates are integers, bytes or floating-point operations a microsecond (1000 bytes a microsecond is
// 1 GB/s), so that every duration is exact integer arithmetic. Peaks are the data sheets' dense
// figures; `matmul_percent`, `attention_percent` and `memory_percent` say what share of them
// kernels reach. The link
// has four rates, for the directions are not symmetric where both are busy. Two tables are
// optional, and matter where several such GPUs run: [peer], links between them, and [port], what
// shares a PCIe root port. A lone GPU has its port to itself, and the link's rates are measured
// through it. What an hour costs (`cost`) is optional as well: `ferry sweep` weighs it. So is the
// L2 cache, `l2` and `l2_rate`; no card that ships states it (docs/times.md). Not modelled: clocks
// that fall under load.
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
  std::int64_t h2d_alone = 0;  // bytes a microsecond, here and below
  std::int64_t d2h_alone = 0;
  std::int64_t h2d_both = 0;  // while the other direction is busy
  std::int64_t d2h_both = 0;
  std::int64_t latency_ns = 0;
  std::int64_t pageable_h2d = 0;  // of memory that is not pinned, which the driver copies aside
  std::int64_t pageable_d2h = 0;
};

// A link like NVLink: to every other GPU, per direction, shared by all of them.
struct PeerLink {
  std::int64_t bytes_per_us = 0;  // 0: no such link, and copies between GPUs cross PCIe
  std::int64_t latency_ns = 0;
};

struct RootPort {
  std::int64_t devices = 0;          // GPUs on one port; 0: a port for each
  std::int64_t up_bytes_per_us = 0;  // towards the host, shared by all of them
  std::int64_t down_bytes_per_us = 0;
};

// What the CPU's own operators reach there, all threads together.
struct HostRates {
  std::int64_t memory_bytes_per_us = 0;  // read and written; 0: not known
  std::int64_t flops_per_us = 0;         // matrix products in single precision
};

struct Hardware {
  std::string name;  // the file's name
  std::string description;
  std::int64_t compute_capability = 0;  // CUDA's, times ten: libraries choose by it; 0: no GPU's
  std::int64_t multiprocessors = 0;     // 0: not known
  std::int64_t memory_bytes = 0;        // memory of the device, as its data sheet has it
  std::int64_t capacity_bytes = 0;      // as PyTorch reports it; the data sheet's, if not known
  std::int64_t context_bytes = 0;       // of a process: CUDA's context and its libraries
  std::int64_t host_memory_bytes = 0;   // host memory that may be pinned
  std::array<std::int64_t, kComputeClasses> flops_per_us{};
  std::int64_t memory_bytes_per_us = 0;
  std::int64_t matmul_percent = 100;
  std::int64_t attention_percent = 100;  // of the same peak, by kernels of attention
  std::int64_t memory_percent = 100;
  std::int64_t l2_bytes = 0;          // 0: no cache is modelled
  std::int64_t l2_bytes_per_us = 0;   // what kernels read from it
  std::int64_t kernel_min_ns = 0;     // the shortest kernel
  std::int64_t launch_ns = 0;         // host time to issue one
  std::int64_t pin_bytes_per_us = 0;  // of cudaHostAlloc, on the host; 0: not known
  Link link;
  PeerLink peer{};
  RootPort port{};
  HostRates host{};
  std::int64_t cost_per_hour = 0;  // in thousandths of whatever money all cards are told in

  // What tensors and workspaces may take.
  std::int64_t usable_bytes() const { return capacity_bytes - context_bytes; }
  std::int64_t flops_per_us_of(DType dtype) const {
    return flops_per_us[static_cast<std::size_t>(compute_class(dtype))];
  }
};

Hardware parse_hardware(std::string_view text, const std::string& file);
Hardware read_hardware(const std::filesystem::path& path);
Hardware find_hardware(const std::string& name_or_path);
// Hardware that ships, by name. A file that cannot be read does not hide the others: `unreadable`
// is called with the error, and the list goes on.
std::vector<Hardware> list_hardware(const Unreadable& unreadable);

}  // namespace ferry
