// Page-locked memory of the host: what cudaHostAlloc gives out.
//
// cudaFreeHost waits for nothing, so a copy that is queued may still read or write what was freed.
// That is the program's mistake, and it is to show: the bytes are scribbled over at once, as if
// they were somebody else's, where kernels compute. Otherwise much of the memory need not exist. It
// is unmapped when no work is queued any more (freed_memory.h).
//
// The bytes are known from the start (known_values.h). All page-locked memory has one limit, and
// its peak is noted. The runtime's lock guards it (runtime.h), and any thread of the program calls.
// Not modelled: cudaHostRegister, and the flags of cudaHostAlloc.
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

  // Null: the machine has no more. The limit is the caller's to ask for.
  void* allocate(std::size_t bytes);
  // False: it was not allocated, and is a wrong free.
  bool free(void* address);

  // What has all of these bytes, or begins there; or null.
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
