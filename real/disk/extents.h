// Allocates places in a file: tracks which extents are taken, and where the next one goes.
//
// First fit: the lowest free extent that is large enough is cut at its start, and only where none
// is does the end grow. A released extent joins its free neighbours; one that reaches the end is
// cut off, so free extents never touch each other nor the end. Memory is taken by allocate alone,
// and release moves map nodes: it cannot fail for want of memory, which a noexcept free() needs.
//
// Invariant: taken and free extents, sorted, tile [0, end) without gap or overlap.
// Offsets and lengths are multiples of kBlockBytes where the caller's lengths are; the allocator
// does not round. Not thread-safe. Not modelled: best fit, any relation to physical blocks.
#pragma once

#include <cstdint>
#include <map>

namespace ferry::real {

inline constexpr std::int64_t kBlockBytes = 4096;

// The least multiple of kBlockBytes that is not below `bytes`, which must leave room for it.
constexpr std::int64_t whole_blocks(std::int64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

class Extents {
 public:
  using Map = std::map<std::int64_t, std::int64_t>;  // offset -> length

  // The offset of a fresh extent of `bytes` > 0; end() + bytes must not overflow. Throws bad_alloc
  // and then changes nothing.
  std::int64_t allocate(std::int64_t bytes);
  // Ends an extent that was allocated so. std::logic_error for any other offset or length.
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
