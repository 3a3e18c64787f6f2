// How long a kernel takes: the roofline (Williams, Waterman, Patterson, CACM 2009).
//
// The longer of computing and of moving bytes, at the share of the peaks that kernels reach, but at
// least the hardware's shortest kernel, as often as the operator runs one; a measured time wins.
// Computing a matrix product, or a convolution as one, takes whole tiles and waves
// (scenarios/matrix_time.h). What the L2 cache has is read at its rate (scenarios/l2.h). That
// copies take of the memory's rate is sim/gpu/memory_rates.h's. Integers only. Not modelled:
// kernels that overlap, grouped convolutions that fill the device badly.
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

// `compute` is the dtype that the operator multiplies in. At least 1.
std::int64_t kernel_ns(const Op& op, DType compute, const Hardware& hardware);

// What the bytes that it moves from and to the memory alone take; of a measured one it may be more
// than its time.
std::int64_t moving_ns(const Op& op, const Hardware& hardware);

}  // namespace ferry
