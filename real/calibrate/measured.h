// The measurements of `ferry calibrate`. Times are in nanoseconds. Rates are in bytes or
// floating-point operations per microsecond, as in scenarios/hardware.h. All are integers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "shared/seam/device.h"

namespace ferry::real::calibrate {

// Times of a repeated action: the median and the minimum over the rounds. The time of a round is
// the mean of its repetitions.
struct Timing {
  std::int64_t ns = 0;
  std::int64_t least_ns = 0;
  std::int64_t rounds = 0;
};

// There must be at least one sample.
Timing timing_of(std::vector<std::int64_t> samples_ns);

struct Machine {
  std::string name;    // "NVIDIA H100 80GB HBM3", "AMD EPYC"
  std::string driver;  // the GPU's driver; on a CPU, the kernel
  std::int64_t memory_bytes = 0;
  std::int64_t host_memory_bytes = 0;
  std::int64_t host_threads = 0;        // threads with which LibTorch computes
  std::int64_t multiprocessors = 0;     // this and the next are of a GPU; 0: unknown
  std::int64_t compute_capability = 0;  // CUDA's, times ten
};

// The time of a copy between the device and the host tier, when several are queued on its lane.
struct CopyTime {
  Lane lane = Lane::kDeviceToHost;
  HostMemory memory = HostMemory::kPinned;
  bool both = false;  // the other lane copied at the same time
  std::int64_t bytes = 0;
  Timing time;
};

// The host's time to allocate and free a block.
struct AllocationTime {
  std::string what;  // such as "device block, cached", or kFreshHostBlock
  std::int64_t bytes = 0;
  Timing time;
};

// A block of the host tier that is in no cache. On a GPU, its memory is pinned.
inline constexpr const char* kFreshHostBlock = "host block, fresh";

struct MatmulTime {
  DType dtype = DType::kF32;
  std::int64_t side = 0;  // side of the square matrices
  Timing time;
};

// The speed of the CPU's own operators.
struct HostSpeed {
  Timing triad;  // like that of the device below
  std::int64_t triad_bytes = 0;
  MatmulTime matmul;  // in single precision
};

struct Measured {
  Machine machine;
  std::vector<CopyTime> copies;
  std::vector<AllocationTime> allocations;
  Timing issue;   // the host's time to issue an operator with autograd
  Timing kernel;  // the shortest kernel
  Timing triad;   // a = b + s * c; `triad_bytes` in all
  std::int64_t triad_bytes = 0;
  std::vector<MatmulTime> matmuls;
  HostSpeed host;  // the same values if the device is the CPU
};

}  // namespace ferry::real::calibrate
