// Finds the stream whose pool a block of PyTorch's caching allocator returns to.
//
// The allocator knows, and has no question for it (a snapshot walks every block). It tells every
// allocation and every free to an AllocatorTraceTracker, so this file listens and keeps a table by
// address: exact for every block given out since it listens, LibTorch's own tensors included. What
// was allocated earlier, and everything under another allocator (cudaMallocAsync, a pluggable one),
// is not known: the core then lets the pool itself wait (record_use).
//
// Cost: 0.11 us of processor time for an allocation and its free together, which take 0.27 us
// without (LibTorch 2.11 on a runtime that does nothing, a 2-core EPYC virtual machine).
//
// One listener per process, for ever: LibTorch cannot detach one. It is told under the allocator's
// lock, and takes none but its own.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace ferry::real {

// Begins to listen; once. The devices must be initialised already.
void follow_block_owners();

// The raw stream (cudaStream_t) of the pool of the block that begins at `address`.
std::optional<void*> block_owner(c10::DeviceIndex device, std::uint64_t address);

}  // namespace ferry::real
