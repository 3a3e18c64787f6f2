// What `ferry calibrate` finds out about a machine. Times are nanoseconds, rates as in
// scenarios/hardware.h: bytes or floating-point operations a microsecond. Integers throughout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "shared/seam/device.h"

namespace ferry::real::calibrate {

// Of one thing done again and again: the median of the rounds, each the mean of what was done in
// it, and the least.
struct Timing {
  std::int64_t ns = 0;
  std::int64_t least_ns = 0;
  std::int64_t rounds = 0;
};

// Of samples, which must not be none.
Timing timing_of(std::vector<std::int64_t> samples_ns);

struct Machine {
  std::string name;    // "NVIDIA H100 80GB HBM3", "AMD EPYC"
  std::string driver;  // of the GPU; of a CPU: the kernel
  std::int64_t memory_bytes = 0;
  std::int64_t host_memory_bytes = 0;
  std::int64_t host_threads = 0;  // that LibTorch computes with
};

// A copy between the device and the host tier, one of several queued on its lane.
struct CopyTime {
  Lane lane = Lane::kDeviceToHost;
  HostMemory memory = HostMemory::kPinned;
  bool both = false;  // while the other lane copies as well
  std::int64_t bytes = 0;
  Timing time;
};

// Host time of a block that is allocated and given back.
struct AllocationTime {
  std::string what;  // "device block, cached"
  std::int64_t bytes = 0;
  Timing time;
};

struct MatmulTime {
  DType dtype = DType::kF32;
  std::int64_t side = 0;  // of the square matrices
  Timing time;
};

struct Measured {
  Machine machine;
  std::vector<CopyTime> copies;
  std::vector<AllocationTime> allocations;
  Timing issue;   // host time of an operator under autograd, without waiting for it
  Timing kernel;  // the shortest kernel
  Timing triad;   // a = b + s * c, of `triad_bytes` altogether
  std::int64_t triad_bytes = 0;
  std::vector<MatmulTime> matmuls;
};

}  // namespace ferry::real::calibrate
