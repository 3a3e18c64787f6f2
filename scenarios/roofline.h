// The time of a kernel, by the roofline model (Williams, Waterman, Patterson, CACM 2009).
//
// The time is the longer one of computing and of moving bytes, at the share of the peaks that
// kernels reach. It is at least the card's shortest kernel for each kernel that the operator runs.
// A measured time replaces all of this. A matrix product, or a convolution as one, computes full
// tiles and waves (scenarios/matrix_time.h). Bytes in the L2 cache are read at its rate
// (scenarios/l2.h). Copies also use the memory; sim/gpu/memory_rates.h models that. All arithmetic
// is in integers. Kernels that overlap, and grouped convolutions that do not fill the device, are
// not modelled.
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

// Returns the operator's time, at least 1. `compute` is the dtype in which the operator multiplies.
std::int64_t kernel_ns(const Op& op, DType compute, const Hardware& hardware);

// Returns the time to move the operator's bytes from and to the memory. It can be more than a
// measured time.
std::int64_t moving_ns(const Op& op, const Hardware& hardware);

}  // namespace ferry
