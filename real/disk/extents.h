// Allocates ranges in a file: it knows which extents are taken, and where the next one goes.
//
// It uses first fit: the lowest free extent that is large enough is cut at its start. Only if there
// is none, the end grows. A released extent joins its free neighbours. One that reaches the end is
// cut off, so free extents never touch each other or the end. Only allocate needs memory; release
// moves map nodes and cannot fail for lack of memory, which a noexcept free() needs.
//
// Invariant: taken and free extents, sorted, tile [0, end) without gap or overlap. Offsets and
// lengths are multiples of kBlockBytes if the caller's lengths are; the allocator does not round.
// Not thread-safe. It ignores the physical position of blocks.
#pragma once

#include <cstdint>
#include <map>

namespace ferry::real {

inline constexpr std::int64_t kBlockBytes = 4096;

// Returns the smallest multiple of kBlockBytes that is at least `bytes`. It must not overflow.
constexpr std::int64_t whole_blocks(std::int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

class Extents {
 public:
  using Map = std::map<std::int64_t, std::int64_t>;  // offset -> length

  // Returns the offset of a new extent of `bytes` > 0; end() + bytes must not overflow. Throws
  // bad_alloc; then nothing has changed.
  std::int64_t allocate(std::int64_t bytes);
  // Ends an extent that allocate returned. Throws std::logic_error for any other offset or length.
  void release(std::int64_t offset, std::int64_t bytes);
  bool holds(std::int64_t offset, std::int64_t bytes) const;

  std::int64_t taken_bytes() const { return taken_bytes_; }
  std::int64_t end() const { return end_; }
  const Map& taken() const { return taken_; }
  const Map& free() const { return free_; }

 private:
  Map taken_;
  Map free_;
  std::int64_t taken_bytes_ = 0;
  std::int64_t end_ = 0;
};

}  // namespace ferry::real
