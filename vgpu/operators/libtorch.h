// Starts LibTorch's CUDA on the virtual GPU, and reports to the runtime's listener which blocks
// LibTorch's caching allocators give out and take back. So the checkers know how long each block
// lives. If the program has chosen cudaMallocAsync, the runtime reports those blocks (pools.h).
#pragma once

namespace ferry::vgpu {

// Initialises CUDA. If LibTorch runs on another CUDA runtime, ends the process with a message.
void start_libtorch();

// The peak of the bytes that LibTorch's caching allocator gave out on this device, since the
// program last reset that peak.
std::int64_t allocated_bytes_peak(int device);

}  // namespace ferry::vgpu
