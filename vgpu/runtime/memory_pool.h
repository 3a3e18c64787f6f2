// Where the stream-ordered allocator (cudaMallocAsync) takes its memory: a device's default pool.
//
// The pool has segments of the device's memory, cut into pieces. A piece that was freed on a stream
// is free for that stream at once, since its work is in order; for another one only once that has
// been made to wait (CUDA's `ReuseAllowInternalDependencies`), which is done where no other memory
// is left: so nothing is ordered by luck. Best fit, then the lowest address. How the driver's own
// pool chooses nobody has published, so what is reserved is a guess.
//
// It counts and cuts addresses, and touches no memory. The runtime's lock guards it (runtime.h).
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

  // What a request takes of the pool, and of the device where the pool has nothing for it.
  static std::size_t rounded(std::size_t bytes);
  static std::size_t segment_bytes(std::size_t bytes);

  void add_segment(std::uintptr_t address, std::size_t bytes);
  // Segments that are free as a whole, until no more than `kept` bytes are reserved.
  std::vector<std::uintptr_t> take_free_segments(std::uint64_t kept);

  // None: nothing that this stream may have is large enough. It gets rounded(bytes).
  std::optional<std::uintptr_t> allocate(std::size_t bytes, StreamId stream);
  // The bytes that it had; none: it is no block of the pool's.
  std::optional<std::size_t> free(std::uintptr_t address, StreamId stream);
  // All that is free becomes this stream's, which has to wait for those that it was freed on.
  std::set<StreamId> give_all_to(StreamId stream);

  struct Level {
    std::uint64_t now = 0;
    std::uint64_t most = 0;
  };
  const Level& reserved() const { return reserved_; }
  const Level& used() const { return used_; }
  // The most becomes what is now.
  void forget_most_reserved() { reserved_.most = reserved_.now; }
  void forget_most_used() { used_.most = used_.now; }

  // So many bytes are kept when the host synchronises.
  std::uint64_t release_threshold() const { return release_threshold_; }
  void set_release_threshold(std::uint64_t bytes) { release_threshold_ = bytes; }

 private:
  struct Piece {
    std::size_t bytes = 0;
    bool is_free = true;
    std::optional<StreamId> freed_on;  // none: nobody has used it
  };
  using Pieces = std::map<std::uintptr_t, Piece>;

  bool joins(Pieces::const_iterator first, Pieces::const_iterator second) const;
  void join_next(Pieces::iterator piece);  // as far as it can

  Pieces pieces_;
  std::map<std::uintptr_t, std::size_t> segments_;
  Level reserved_, used_;
  std::uint64_t release_threshold_ = 0;
};

}  // namespace ferry::vgpu
