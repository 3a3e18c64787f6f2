// A kernel that does nothing for a while, so that what follows it on the stream is issued before it
// runs: for times that are the device's alone (real/capture/op_clock.h).
#pragma once

#include <cstdint>

namespace ferry::real {

// Runs on the current stream of the current device. Throws CUDA's error.
void stall_current_stream();

}  // namespace ferry::real
