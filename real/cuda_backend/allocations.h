// Logs the blocks of PyTorch's caching allocator in the stream log that is active when they are
// allocated or their free is requested.
#pragma once

namespace ferry::real {

// Begins for the rest of the process: LibTorch cannot detach a listener. If the allocator reports
// nothing (cudaMallocAsync, a pluggable one), nothing is logged.
void log_allocations();

}  // namespace ferry::real
