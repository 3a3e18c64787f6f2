// Where a device's memory lies in this process: as a driver would put it
// (formats/segment_addresses.h), among addresses that are reserved a TiB at a time. What the
// runtime has of them is unmapped by mapping nothing there, never by munmap.
//
// It owns the addresses, until the process ends, and not the memory (device_memory.h). The
// runtime's lock guards it (runtime.h).
#pragma once

#include <cstddef>
#include <optional>

#include "formats/segment_addresses.h"

namespace ferry::vgpu {

class DeviceAddresses {
 public:
  // Null: the machine has no such addresses. Nothing is mapped there yet.
  void* take(std::size_t bytes, AddressOrder order);
  // All that were taken are free again, and may be given out anew.
  void restart() { addresses_.reset(); }

 private:
  bool reserve(std::size_t bytes);

  char* begin_ = nullptr;  // of the last that were reserved
  std::size_t size_ = 0;
  std::optional<SegmentAddresses> addresses_;
};

}  // namespace ferry::vgpu
