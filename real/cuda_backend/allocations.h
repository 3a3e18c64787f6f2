// Writes the blocks of PyTorch's caching allocator to the active stream log: when they are
// allocated, and when their free is requested.
#pragma once

namespace ferry::real {

// Starts logging for the rest of the process, because LibTorch cannot remove a tracker. If the
// allocator reports nothing (cudaMallocAsync, a pluggable one), nothing is logged.
void log_allocations();

}  // namespace ferry::real
