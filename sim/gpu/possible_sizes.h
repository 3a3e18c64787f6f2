// The sizes that a block may have had of which a trace says only how much was requested.
//
// The allocator gives a block out whole where little would be left (1 MiB, in the large pool), so a
// block is as large as its request, or up to so much larger. What lies behind it tells: in the
// large pool a free block is larger than such a rest, and a request takes the smallest free block
// that suffices, of equal ones that with the lowest address. So a size with which some request
// would have been given the space behind the block, and was not, is none that it had.
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
  // From `least` to `most`.
  PossibleSizes(std::int64_t least, std::int64_t most) : least_(least), most_(most) {}

  // The next block in use, or the segment's end, was so many bytes behind its beginning.
  void see_room(std::int64_t bytes);
  // With so much room a request of `rounded` bytes was given another block. That was of
  // `given_bytes`; `before`: its address is higher. None: nothing that is free was as large.
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
