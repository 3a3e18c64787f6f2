// The blocks of PyTorch's caching allocator, in the stream log that is active when they are given
// out or asked back.
#pragma once

namespace ferry::real {

// From now on, and for ever: LibTorch cannot detach a listener. Where the allocator tells nothing
// (cudaMallocAsync, a pluggable one), nothing is logged.
void log_allocations();

}  // namespace ferry::real
