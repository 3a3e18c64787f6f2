// Memory of devices and page-locked memory that was freed and is still mapped in this process.
//
// Queued work may use memory that was freed since. That is a mistake of the program, but it must
// not end the process. So memory is unmapped only when no work is queued: at its free, or later.
// The addresses of device memory stay reserved even then, and a later use of them ends the process,
// until device_memory.h gives them out again. A replay of a graph may use memory that was freed
// since the capture, so nothing is unmapped while the program has an executable graph.
//
// The runtime's lock guards the class (runtime.h). It owns the memory from the free until it is
// unmapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

class FreedMemory {
 public:
  explicit FreedMemory(const Streams& streams) : streams_(streams) {}
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;

  // Adds memory that begins at a page. If `stays` is true, its addresses stay reserved.
  void add(void* address, std::size_t bytes, bool stays);
  // Call it only when nothing is queued.
  void unmap();
  bool is_empty() const { return freed_.empty(); }
  // Between the two nothing is unmapped. Calls may be nested.
  void keep() { ++keepers_; }
  void release() { --keepers_; }

  // Counts a failed free of memory that the runtime did not give out.
  void count_wrong() { ++wrong_; }
  void forget_wrong() { wrong_ = 0; }
  std::int64_t wrong() const { return wrong_; }

 private:
  struct Freed {
    void* address = nullptr;
    std::size_t bytes = 0;
    bool stays = false;
  };

  const Streams& streams_;
  std::vector<Freed> freed_;
  std::int64_t wrong_ = 0;
  std::int64_t keepers_ = 0;
};

}  // namespace ferry::vgpu
