// The default pool of a device, from which the stream-ordered allocator (cudaMallocAsync) takes its
// memory.
//
// The pool has segments of device memory, which are cut into pieces. A piece that was freed on a
// stream is free for that stream at once, because the stream's work is in order. Another stream may
// have it only after it was made to wait (CUDA's `ReuseAllowInternalDependencies`). The pool does
// that only when no other memory is left, so that no order comes about by luck. It takes the
// smallest piece that fits, at the lowest address. How the driver's own pool chooses is not
// published, so the reserved size is a guess.
//
// The class counts and cuts addresses, and touches no memory. The runtime's lock guards it
// (runtime.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu {

class MemoryPool {
 public:
  static constexpr std::size_t kAlignment = 512;
  static constexpr std::size_t kLeastSegment = std::size_t{32} << 20;

  // The size that a request takes from the pool, and from the device if the pool has no such piece.
  static std::size_t rounded(std::size_t bytes);
  static std::size_t segment_bytes(std::size_t bytes);

  void add_segment(std::uintptr_t address, std::size_t bytes);
  // Takes segments that are wholly free out of the pool, until at most `kept` bytes are reserved.
  std::vector<std::uintptr_t> take_free_segments(std::uint64_t kept);

  // Takes rounded(bytes). Returns nullopt if no piece that this stream may have is large enough.
  std::optional<std::uintptr_t> allocate(std::size_t bytes, StreamId stream);
  // Returns the size of the freed block, or nullopt if the pool has no such block.
  std::optional<std::size_t> free(std::uintptr_t address, StreamId stream);
  // Gives all free pieces to this stream. Returns the streams on which they were freed; the new
  // owner has to wait for these.
  std::set<StreamId> give_all_to(StreamId stream);

  struct Level {
    std::uint64_t now = 0;
    std::uint64_t most = 0;
  };
  const Level& reserved() const { return reserved_; }
  const Level& used() const { return used_; }
  // These make the peak equal to the current value.
  void forget_most_reserved() { reserved_.most = reserved_.now; }
  void forget_most_used() { used_.most = used_.now; }

  // The bytes that stay reserved when the host synchronises.
  std::uint64_t release_threshold() const { return release_threshold_; }
  void set_release_threshold(std::uint64_t bytes) { release_threshold_ = bytes; }

 private:
  struct Piece {
    std::size_t bytes = 0;
    bool is_free = true;
    std::optional<StreamId> freed_on;  // nullopt if nobody has used it
  };
  using Pieces = std::map<std::uintptr_t, Piece>;

  bool joins(Pieces::const_iterator first, Pieces::const_iterator second) const;
  void join_next(Pieces::iterator piece);  // joins as many as it can

  Pieces pieces_;
  std::map<std::uintptr_t, std::size_t> segments_;
  Level reserved_, used_;
  std::uint64_t release_threshold_ = 0;
};

}  // namespace ferry::vgpu
