// A kernel that does nothing for a while, so that the host issues the following work before it
// runs. Then its measured time is only the device's (real/capture/op_clock.h).
#pragma once

#include <cstdint>

namespace ferry::real {

// Runs on the current stream of the current device. Throws CUDA's error.
void stall_current_stream();

}  // namespace ferry::real
