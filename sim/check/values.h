// Symbolic contents of memory, by address, in the order in which the host issued the ops.
//
// A byte is (value, offset): it is byte number `offset` of what one write produced. The value of a
// kernel's output is a hash of the kernel's tag, of the output's number, and of all that the kernel
// read. So if the ops of a run saw the right inputs, it ends with the same values as a run without
// offloading. After a wrong order of host calls, a stale copy or a lost write, it ends with others.
// Happens-before then extends the result from the issue order to every timing.
//
// Contents move with copies and contain no address. So bytes that went to the host and came back to
// another place read the same, in whatever pieces they travelled. Bytes that were not written since
// their allocation are undefined, and all undefined bytes are equal.
// Not modelled: arithmetic (equal results of different computations differ), strided reads (a
// kernel reads ranges), hash collisions (2^-64 each).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/stream_op.h"
#include "sim/check/interval_map.h"

namespace ferry::check {

// The tag of a sum. Its summands have no order, and a nested sum counts as its summands.
inline constexpr std::uint64_t kSumTag = 0x61646461'64646164u;

// The tag of a gather: a copy of a view without the view's gaps.
inline constexpr std::uint64_t kGatherTag = 0x67617468'67617468u;

class Values {
 public:
  // kAlloc makes its range undefined. kCopy moves reads[0] to writes[0]; if the source is shorter,
  // the rest becomes undefined. kKernel and kHostWrite make new values in `writes`, and kHostWrite
  // also in `range`.
  void operator()(const StreamOp& op);

  // Sets initial contents, for parameters and inputs.
  void write(Range range, std::uint64_t value);

  // Returns a hash of the contents, which is equal for equal bytes, wherever they lie.
  std::uint64_t read(Range range) const;

  // Returns what read() gives for the result of a gather of so many bytes. `contents` is what
  // read() gave for the source.
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
  // Consecutive bytes of one write. `at` counts from the start of the range that was read.
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
