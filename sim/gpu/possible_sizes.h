// The possible sizes of a block for which a trace has only the requested bytes. snapshot_start.h
// needs them, to know the blocks that existed before the trace.
//
// The allocator gives out a whole block if the rest would be small (up to 1 MiB in the large pool).
// So a block is as large as its request, or up to so much larger. Later requests narrow this down:
// in the large pool a free block is larger than such a rest, and a request takes the smallest free
// block that is large enough (of equal ones, the one with the lowest address). So a size is
// impossible if, with it, some request would have got the space behind the block, but did not.
//
// All sizes are multiples of 512 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ferry::sim {

class PossibleSizes {
 public:
  // Begins with all sizes from `least` to `most`.
  PossibleSizes(std::int64_t least, std::int64_t most) : least_(least), most_(most) {}

  // The next block in use, or the segment's end, was so many bytes behind the block's beginning.
  void see_room(std::int64_t bytes);
  // With so much room, a request of `rounded` bytes got another block, of `given_bytes` (none: no
  // free block was as large). `before`: that block's address is higher.
  void see_request(std::int64_t room, std::int64_t rounded, std::optional<std::int64_t> given_bytes,
                   bool before);

  std::optional<std::int64_t> smallest() const;  // none: the trace contradicts itself
  std::optional<std::int64_t> largest() const;
  bool is_settled() const { return smallest() == largest(); }

 private:
  void forbid(std::int64_t from, std::int64_t to);  // both included
  const std::pair<std::int64_t, std::int64_t>* forbidding(std::int64_t bytes) const;

  std::int64_t least_;
  std::int64_t most_;
  std::vector<std::pair<std::int64_t, std::int64_t>> forbidden_;
};

}  // namespace ferry::sim
