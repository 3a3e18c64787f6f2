// The driver's virtual memory, of which LibTorch makes expandable segments: addresses are reserved,
// pieces of memory created, and a piece is mapped to addresses (CUDA driver API, "Virtual Memory
// Management").
//
// A piece takes room on its device from its making until it is released and mapped nowhere. It is
// mapped as a whole, once at most. An unmap waits for the device, which CUDA leaves to the program.
// Not there: sharing with other processes, multicast, access of single devices.
//
// It owns the addresses and the pieces. What is mapped is an allocation of the device as well,
// which the entry points tell device_memory.h. The runtime's lock guards it (runtime.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace ferry::vgpu {

class VirtualMemory {
 public:
  static constexpr std::size_t kGranularity = std::size_t{2} << 20;

  // Null: the machine has no such addresses.
  void* reserve(std::size_t bytes);
  // Whether they were reserved, and nothing is mapped there.
  bool give_back(void* address, std::size_t bytes, bool keeps_addresses);

  std::uint64_t create(std::size_t bytes, int device);
  bool release(std::uint64_t piece);
  // The device of the piece that is now at these reserved addresses; -1: it cannot be.
  int map(void* address, std::size_t bytes, std::uint64_t piece);
  // The device of the pieces that these addresses held, all of each; -1: they did not.
  int unmap(void* address, std::size_t bytes);
  bool is_mapped(void* address, std::size_t bytes) const;

  std::int64_t bytes(int device) const;

 private:
  struct Reservation {
    std::size_t bytes = 0;
    void* begin = nullptr;  // of the machine's own, which need not be aligned
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
