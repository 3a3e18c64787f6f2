// A kernel that does nothing for a while: what makes a stream late on purpose.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ferry::real {

// Queues it on this stream of the current device. One thread of one block, so that it takes next to
// nothing of the device from the other streams. Throws c10::Error where it cannot be launched.
void spin(cudaStream_t stream, std::int64_t microseconds);

}  // namespace ferry::real
