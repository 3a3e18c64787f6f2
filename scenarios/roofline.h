// How long a kernel takes: the roofline (Williams, Waterman, Patterson, CACM 2009).
//
// The longer of computing and of moving bytes, at the share of the peaks that kernels reach, but at
// least the hardware's shortest kernel, as often as the operator runs one; a measured time wins.
// Computing a matrix product, or a convolution as one, takes whole tiles and waves
// (scenarios/matrix_time.h). Integers only. Not modelled: caches, kernels that overlap, grouped
// convolutions that fill the device badly.
#pragma once

#include <cstdint>

#include "formats/program.h"
#include "scenarios/hardware.h"

namespace ferry {

// `compute` is the dtype that the operator multiplies in. At least 1.
std::int64_t kernel_ns(const Op& op, DType compute, const Hardware& hardware);

// What its bytes alone take; of a measured one it may be more than its time.
std::int64_t moving_ns(const Op& op, const Hardware& hardware);

}  // namespace ferry
