// LibTorch's CUDA on the virtual GPU, begun: what its caching allocator gives out and takes back
// goes to the runtime's listener.
#pragma once

namespace ferry::vgpu {

// Initialises CUDA. Ends the process with a message where LibTorch runs on another runtime.
void start_libtorch();

// The peak of what LibTorch's caching allocator gave out of this device's memory; since the program
// last reset it.
std::int64_t allocated_bytes_peak(int device);

}  // namespace ferry::vgpu
