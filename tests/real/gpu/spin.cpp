#include "tests/real/gpu/spin.h"

#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "tests/real/gpu/spin_kernel.h"

namespace ferry::real {

void spin(cudaStream_t stream, std::int64_t microseconds) {
#if FERRY_NVCC
  C10_CUDA_CHECK(launch_spin(stream, microseconds * 1000));
#else
  // LibTorch's counts cycles: so many at the clocks that today's GPUs have.
  constexpr std::int64_t kCyclesPerMicrosecond = 1500;
  const c10::cuda::CUDAStreamGuard guard(
      c10::cuda::getStreamFromExternal(stream, c10::cuda::current_device()));
  at::cuda::sleep(microseconds * kCyclesPerMicrosecond);
#endif
}

}  // namespace ferry::real
