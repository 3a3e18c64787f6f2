// The driver's virtual memory, from which LibTorch makes expandable segments: addresses are
// reserved, pieces of memory are created, and a piece is mapped to addresses (CUDA driver API,
// "Virtual Memory Management").
//
// A piece takes memory of its device from its creation until it is released and no longer mapped.
// It is mapped as a whole, and to one place at most. An unmap waits for the device, which CUDA
// leaves to the program. Not modelled: sharing with other processes, multicast, access rights of
// single devices.
//
// The class owns the addresses and the pieces. Mapped memory is an allocation of its device as
// well, which the entry points report to device_memory.h. The runtime's lock guards the class
// (runtime.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace ferry::vgpu {

class VirtualMemory {
 public:
  static constexpr std::size_t kGranularity = std::size_t{2} << 20;

  // Returns null if the machine has no such addresses.
  void* reserve(std::size_t bytes);
  // Returns false if they were not reserved, or something is mapped there.
  bool give_back(void* address, std::size_t bytes, bool keeps_addresses);

  std::uint64_t create(std::size_t bytes, int device);
  bool release(std::uint64_t piece);
  // Maps the piece to reserved addresses. Returns the piece's device, or -1 if it cannot be mapped
  // there.
  int map(void* address, std::size_t bytes, std::uint64_t piece);
  // Unmaps the pieces at these addresses, each as a whole. Returns their device, or -1 on failure.
  int unmap(void* address, std::size_t bytes);
  bool is_mapped(void* address, std::size_t bytes) const;

  std::int64_t bytes(int device) const;

 private:
  struct Reservation {
    std::size_t bytes = 0;
    void* begin = nullptr;  // as the machine returned it, perhaps not aligned
    std::size_t size = 0;
  };
  struct Piece {
    std::size_t bytes = 0;
    int device = 0;
    bool mapped = false;
    bool released = false;
  };
  struct Mapped {
    std::size_t bytes = 0;
    std::uint64_t piece = 0;
  };

  bool is_reserved(std::uintptr_t address, std::size_t bytes) const;
  bool is_free(std::uintptr_t address, std::size_t bytes) const;

  std::map<std::uintptr_t, Reservation> reservations_;
  std::map<std::uintptr_t, Mapped> mapped_;
  std::map<std::uint64_t, Piece> pieces_;
  std::uint64_t made_ = 0;
};

}  // namespace ferry::vgpu
