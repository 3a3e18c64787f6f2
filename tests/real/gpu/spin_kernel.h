// Ours, compiled by nvcc: no header of LibTorch's is seen there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ferry::real {

cudaError_t launch_spin(cudaStream_t stream, std::int64_t nanoseconds);

}  // namespace ferry::real
