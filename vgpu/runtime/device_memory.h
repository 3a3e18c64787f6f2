// The memory of the devices, which is the host's: what cudaMalloc gives out, and what pieces of
// virtual memory are mapped to.
//
// It lies where a driver would put it (device_addresses.h), and is filled by nobody. What is freed
// is forgotten by the log at once, and unmapped when no work is queued any more (freed_memory.h);
// the caller has had the device finish. Addresses are given out again, once nothing is left of any
// device, unless they are to be kept. Of virtual memory (virtual_memory.h), what is mapped side by
// side on one device is one allocation here, so that an access may cross from piece to piece.
//
// A device's capacity is counted, with the pieces that are mapped nowhere, and its peaks are noted.
// The runtime's lock guards it (runtime.h), and any thread of the program calls. Not modelled: that
// a device's memory is split up, so that one large request fails where many small ones fit.
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

  // Null: the machine has no such addresses. The capacity is the caller's to ask for.
  void* allocate(std::size_t bytes, int device);
  // False: it was not allocated, and is a wrong free.
  bool free(void* address);

  // A piece of virtual memory was mapped there, or none is any more: of one allocation, all of
  // these bytes.
  void add_mapped(void* address, std::size_t bytes, int device);
  void remove_mapped(void* address, std::size_t bytes);

  // What has all of these bytes, or null.
  const Allocation* find(const void* address, std::size_t bytes) const {
    return find_allocation(allocations_, address, bytes);
  }
  // The bytes as the log has them: a device's by their addresses, all others above kHostBase.
  Range range(const void* address, std::size_t bytes) const;

  std::int64_t bytes(int device) const;
  std::int64_t bytes() const;  // of all devices
  std::int64_t free_bytes(int device) const;
  // Memory was taken of the devices.
  void note_peaks();
  std::vector<std::int64_t> peaks() const;  // of each device that there is

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
