// Chooses where a device's memory lies in this process: where a driver would put it
// (formats/segment_addresses.h). Address space is reserved one TiB at a time. Freed memory is
// mapped over without access, never unmapped with munmap, so its addresses stay reserved.
//
// The class owns the address space until the process ends, but not the memory (device_memory.h).
// The runtime's lock guards it (runtime.h).
#pragma once

#include <cstddef>
#include <optional>

#include "formats/segment_addresses.h"

namespace ferry::vgpu {

class DeviceAddresses {
 public:
  // Returns addresses where nothing is mapped yet; null if the machine has none.
  void* take(std::size_t bytes, AddressOrder order);
  // Makes all addresses free again. They may be given out a second time.
  void restart() { addresses_.reset(); }

 private:
  bool reserve(std::size_t bytes);

  char* begin_ = nullptr;  // the latest reservation
  std::size_t size_ = 0;
  std::optional<SegmentAddresses> addresses_;
};

}  // namespace ferry::vgpu
