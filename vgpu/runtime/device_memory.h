// The memory of the devices, which is host memory: blocks of cudaMalloc, and mapped pieces of
// virtual memory.
//
// It lies where a driver would put it (device_addresses.h), and the runtime does not fill it. Free
// a block only after the device has finished. The log forgets the block at once. The block is
// unmapped later, when no work is queued (freed_memory.h). Once no memory of any device is left,
// addresses are given out again, unless the settings keep them. Pieces of virtual memory
// (virtual_memory.h) that are mapped side by side on one device are one allocation here, so that an
// access may cross them.
//
// A device's use is counted, including pieces that are mapped nowhere, and its peak is noted. The
// runtime's lock guards the class (runtime.h); any thread of the program may call it. Not modelled:
// fragmented device memory, in which one large request fails and many small ones fit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vgpu/runtime/allocations.h"
#include "vgpu/runtime/device_addresses.h"
#include "vgpu/runtime/freed_memory.h"
#include "vgpu/runtime/known_values.h"
#include "vgpu/runtime/log.h"
#include "vgpu/runtime/settings.h"
#include "vgpu/runtime/virtual_memory.h"

namespace ferry::vgpu {

class DeviceMemory {
 public:
  DeviceMemory(const Settings& settings, const VirtualMemory& virtual_memory, FreedMemory& freed,
               KnownValues& values, Log& log)
      : settings_(settings),
        virtual_memory_(virtual_memory),
        freed_(freed),
        values_(values),
        log_(log) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns null if the machine has no such addresses. The caller checks the capacity first.
  void* allocate(std::size_t bytes, int device);
  // Returns false if the address was not allocated, which counts as a wrong free.
  bool free(void* address);

  // Call these when a piece of virtual memory was mapped to these addresses, or unmapped from them.
  // Bytes that are unmapped must lie in one allocation.
  void add_mapped(void* address, std::size_t bytes, int device);
  void remove_mapped(void* address, std::size_t bytes);

  // Returns the allocation that contains all of these bytes, or null.
  const Allocation* find(const void* address, std::size_t bytes) const {
    return find_allocation(allocations_, address, bytes);
  }
  // Returns the range as the log has it: device memory at its own address, all other memory at its
  // address plus 2^60.
  Range range(const void* address, std::size_t bytes) const;

  std::int64_t bytes(int device) const;
  std::int64_t bytes() const;  // the sum over all devices
  std::int64_t free_bytes(int device) const;
  // Updates the peaks. allocate() does so itself. Call it after a piece of virtual memory was made.
  void note_peaks();
  std::vector<std::int64_t> peaks() const;  // one for each device

 private:
  using Addresses = std::array<DeviceAddresses, kDevices>;

  void* take_addresses(std::size_t bytes, int device);

  const Settings& settings_;
  const VirtualMemory& virtual_memory_;
  FreedMemory& freed_;
  KnownValues& values_;
  Log& log_;
  Allocations allocations_;
  Addresses addresses_;
  std::array<std::int64_t, kDevices> peaks_{};
};

}  // namespace ferry::vgpu
