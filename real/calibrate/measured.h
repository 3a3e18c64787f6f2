// The measurements of `ferry calibrate`. Times are in nanoseconds, rates as in
// scenarios/hardware.h: bytes or floating-point operations a microsecond. All are integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "shared/seam/device.h"

namespace ferry::real::calibrate {

// Times of one repeated action: the median of the rounds, each the mean of its repetitions, and the
// least.
struct Timing {
  std::int64_t ns = 0;
  std::int64_t least_ns = 0;
  std::int64_t rounds = 0;
};

// Takes samples; there must be at least one.
Timing timing_of(std::vector<std::int64_t> samples_ns);

struct Machine {
  std::string name;    // "NVIDIA H100 80GB HBM3", "AMD EPYC"
  std::string driver;  // the GPU's driver; on a CPU, the kernel
  std::int64_t memory_bytes = 0;
  std::int64_t host_memory_bytes = 0;
  std::int64_t host_threads = 0;        // threads that LibTorch computes with
  std::int64_t multiprocessors = 0;     // of a GPU, here and below; 0: not known
  std::int64_t compute_capability = 0;  // CUDA's, times ten
};

// The time of a copy between the device and the host tier, one of several queued on its lane.
struct CopyTime {
  Lane lane = Lane::kDeviceToHost;
  HostMemory memory = HostMemory::kPinned;
  bool both = false;  // the other lane copied at the same time
  std::int64_t bytes = 0;
  Timing time;
};

// The host's time to allocate and free a block.
struct AllocationTime {
  std::string what;  // "device block, cached"; of the host tier, kFreshHostBlock
  std::int64_t bytes = 0;
  Timing time;
};

// A block of the host tier that no cache has: on a GPU, memory that is pinned.
inline constexpr const char* kFreshHostBlock = "host block, fresh";

struct MatmulTime {
  DType dtype = DType::kF32;
  std::int64_t side = 0;  // side of the square matrices
  Timing time;
};

// What the CPU's own operators reach.
struct HostSpeed {
  Timing triad;  // as the device's below
  std::int64_t triad_bytes = 0;
  MatmulTime matmul;  // in single precision
};

struct Measured {
  Machine machine;
  std::vector<CopyTime> copies;
  std::vector<AllocationTime> allocations;
  Timing issue;   // the host's time for an operator under autograd, without waiting for it
  Timing kernel;  // the shortest kernel
  Timing triad;   // a = b + s * c, over `triad_bytes` in all
  std::int64_t triad_bytes = 0;
  std::vector<MatmulTime> matmuls;
  HostSpeed host;  // where the device is the CPU: the same
};

}  // namespace ferry::real::calibrate
