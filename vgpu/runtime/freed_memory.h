// What was freed, of devices or of page-locked memory, and is still mapped in this process.
//
// Work that is queued may use memory that was freed since, which is the program's mistake and not
// the process's end. So memory is unmapped when no work is queued: at its free, or later. The
// addresses of a device's memory stay reserved even then, so that nobody else's memory lies there
// and a use of them after that ends the process.
//
// The runtime's lock guards it (runtime.h). It owns the memory from the free until it is unmapped.
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

  // So many bytes at a page; `stays`: the addresses stay reserved.
  void add(void* address, std::size_t bytes, bool stays);
  // Nothing is queued.
  void unmap();
  bool is_empty() const { return freed_.empty(); }

  // A program freed what was none of the runtime's, which failed.
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
};

}  // namespace ferry::vgpu
