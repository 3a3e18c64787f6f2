#include "real/cuda_backend/stall.h"

#include <ATen/cuda/Sleep.h>

namespace ferry::real {

void stall_current_stream() {
  constexpr std::int64_t kCycles = 400'000;  // 200 microseconds at 2 GHz
  at::cuda::sleep(kCycles);
}

}  // namespace ferry::real
