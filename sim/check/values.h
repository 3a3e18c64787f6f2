// Symbolic contents of memory, by address, in the order in which the host issued the ops.
//
// A byte is (value, offset): the offset-th byte of what one write produced. A kernel's value is a
// hash of its tag, of which of its outputs this is, and of all that it read; so a run whose ops
// saw the right inputs ends with the same values as the run without offloading, and a wrong order
// of host calls, a stale copy or a lost write ends with others. Happens-before then lifts "in issue
// order" to every timing.
//
// Contents move with copies and have no address in them: what went to the host and came back to
// another place reads the same, in whatever pieces it travelled. Bytes never written since their
// allocation are undefined, all alike.
// Not modelled: arithmetic (equal results by different means differ), views that a kernel reads
// with strides (it reads ranges), hash collisions (2^-64 each).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/stream_op.h"
#include "sim/check/interval_map.h"

namespace ferry::check {

// The tag of a sum: its summands have no order, and a nested sum counts as its summands.
inline constexpr std::uint64_t kSumTag = 0x61646461'64646164u;

// The tag of a copy without the gaps of the view that it reads.
inline constexpr std::uint64_t kGatherTag = 0x67617468'67617468u;

class Values {
 public:
  // kAlloc makes its range undefined. kCopy moves reads[0] to writes[0]; if it is shorter, the
  // rest becomes undefined. kKernel and kHostWrite (of `range`, or of `writes`) make new
  // values.
  void operator()(const StreamOp& op);

  // Sets initial contents: parameters, inputs.
  void write(Range range, std::uint64_t value);

  // A hash of the contents: equal for equal bytes, wherever they lie.
  std::uint64_t read(Range range) const;

  // What read() says of so many bytes that a gather wrote, of a view of which it said `contents`.
  static std::uint64_t gathered(std::uint64_t contents, std::uint64_t bytes);

 private:
  struct Content {
    std::uint64_t value = 0;  // 0: undefined
    std::uint64_t offset = 0;
  };
  struct Shift {
    void operator()(Content& content, std::uint64_t distance) const {
      if (content.value != 0) content.offset += distance;
    }
  };
  // A stretch of one write's bytes, `at` counted from the start of the range it was read from.
  struct Stretch {
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
    Content content;
  };

  void write_as_it_is(Range range, std::uint64_t value);
  std::uint64_t summand(Range range) const;
  std::span<const Stretch> runs(Range range) const;
  void cut_into_runs(Range range, std::vector<Stretch>& into) const;
  static std::uint64_t hash_of(Range range, std::span<const Stretch> runs);
  void copy(Range from, Range to);

  IntervalMap<Content, Shift> contents_;
  mutable std::vector<Stretch> scratch_;
};

}  // namespace ferry::check
