#include "tests/real/gpu/spin_kernel.h"

namespace ferry::real {
namespace {

__global__ void spin_kernel(std::int64_t nanoseconds) {
  std::int64_t begin = 0;
  std::int64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

}  // namespace

cudaError_t launch_spin(cudaStream_t stream, std::int64_t nanoseconds) {
  spin_kernel<<<1, 1, 0, stream>>>(nanoseconds);
  return cudaGetLastError();
}

}  // namespace ferry::real
