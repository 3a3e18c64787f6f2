// The page-locked memory of the host, which cudaHostAlloc gives out.
//
// cudaFreeHost waits for nothing, so a queued copy may still read or write what was freed. That is
// a mistake of the program and should show. So if all kernels compute, the bytes are overwritten at
// once, as if they had a new owner. Otherwise they are left alone, because much of the memory need
// not exist. Freed memory is unmapped when no work is queued any more (freed_memory.h).
//
// The bytes are known from the start (known_values.h). One limit holds for all page-locked memory,
// and the peak is noted. The runtime's lock guards the class (runtime.h); any thread of the program
// may call it. Not modelled: cudaHostRegister, and the flags of cudaHostAlloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vgpu/runtime/allocations.h"
#include "vgpu/runtime/freed_memory.h"
#include "vgpu/runtime/known_values.h"
#include "vgpu/runtime/settings.h"

namespace ferry::vgpu {

class PinnedMemory {
 public:
  PinnedMemory(const Settings& settings, FreedMemory& freed, KnownValues& values)
      : settings_(settings), freed_(freed), values_(values) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // Returns null if the machine has no more memory. The caller checks the limit first.
  void* allocate(std::size_t bytes);
  // Returns false if the address was not allocated, which counts as a wrong free.
  bool free(void* address);

  // These return the allocation that contains all of these bytes, or that begins there; or null.
  const Allocation* find(const void* address, std::size_t bytes) const {
    return find_allocation(allocations_, address, bytes);
  }
  const Allocation* find_begin(const void* address) const;

  std::int64_t bytes() const;
  std::int64_t free_bytes() const;
  std::int64_t peak() const { return peak_; }

 private:
  const Settings& settings_;
  FreedMemory& freed_;
  KnownValues& values_;
  Allocations allocations_;
  std::int64_t peak_ = 0;
};

}  // namespace ferry::vgpu
