// Chooses nested spans of operators to recompute, for every budget at once, by dynamic programming:
// over the blocks of a forward (nest_blocks.h), and over the memory left for them. Nested spans
// need less memory than spans that are not nested (span_table.h), because operators may be
// recomputed several times.
//
//     sweep(i, l, m)  the least time of recomputes for the backward of the blocks [i, l), in m
//                     bytes, if their inputs are in memory: the minimum of
//
//       i direct      its time + sweep(i + 1, l, m - what it makes for backward)
//       through       for each j: the time of [i, j) + sweep(j, l, m - frontier)
//         [i, j)        + the smaller of sweep(i, j, m), which recomputes the part of the frontier
//                         that its own nodes save, and sweep(i, j, m - frontier), which does not
//
//     least(i, m)     the same for the whole forward from i on: the minimum of keeping i, and of an
//                     outermost span [i, j): its cheapest sweep + least(j, m - what it retains)
//
// If each block saves what it makes, and `through` recomputes the frontier, this is the recursion
// of rotor (arXiv 1911.13214), except that the result of a span's last operator is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/plan.h"
#include "plan/nest_blocks.h"
#include "plan/span_table.h"

namespace ferry::plan {

class NestTable {
 public:
  // The choices must outlive the table. Internally its slots are larger than those of the choices.
  explicit NestTable(const SpanChoices& choices);

  // Arguments and results of these functions are in slots of the choices.
  bool fits(std::int32_t slots) const { return least(0)[own(slots)] < kNever; }
  std::int32_t least_slots() const;
  // The least time of recomputes. fits(slots) must be true.
  sim::Time ns(std::int32_t slots) const { return least(0)[own(slots)] * unit_ns_; }
  // The fastest set of spans in so many slots, in order; empty if nothing fits.
  std::vector<PlanSpan> spans(std::int32_t slots) const;

 private:
  using Row = std::vector<std::int32_t>;  // least times, by slots
  // A sweep over the blocks [begin, end). `held`: results needed from `end` on are in memory
  // already.
  struct Sweep {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool held = false;
  };
  // One choice of the recursion: its time (in units) and its slots.
  struct Step {
    std::int32_t ns = 0;
    std::int32_t needed = 0;  // while it runs
    std::int32_t taken = 0;   // from then on
  };

  // The time of an entry that does not fit, in units. A larger value would allow longer recomputes;
  // sums of two entries must fit into 32 bits.
  static constexpr std::int32_t kNever = std::int32_t{1} << 28;

  std::size_t own(std::int32_t slots) const;
  std::int32_t slots(std::int64_t bytes) const;
  std::int32_t units(sim::Time ns) const { return static_cast<std::int32_t>(ns / unit_ns_); }
  const std::int32_t* least(std::size_t block) const { return &least_[block * width_]; }
  const Row& sweep(const Sweep& of) const;
  std::size_t number(const Sweep& of) const;
  Step direct(const Sweep& of) const;
  Step through(const Sweep& of, std::size_t middle) const;
  Step kept(std::size_t block) const;
  // Slots that an outermost span retains: for its own sweep, and including what later blocks need.
  struct Stays {
    std::int32_t own = 0;
    std::int32_t all = 0;
  };
  Stays stays(std::size_t begin, std::size_t end) const;
  void fill(const Sweep& of);
  void fill_least();
  // Reads the chosen spans of a sweep from the table. `left` are its slots; the span around it
  // keeps the operators `around`.
  std::vector<PlanSpan> inner(Sweep of, std::size_t left, const std::vector<std::uint64_t>& around,
                              std::size_t depth) const;
  PlanSpan span(const Sweep& of, std::size_t left, const std::vector<std::uint64_t>& around,
                std::size_t depth) const;

  const SpanChoices& choices_;
  const NestBlocks blocks_;
  std::size_t width_ = 1;
  std::int64_t slot_bytes_ = 1;
  sim::Time unit_ns_ = 1;
  // Running sums of bytes of a sweep's direct blocks, by end, then by block. Slots are differences
  // of rounded sums, so that rounding errors do not add up.
  std::array<std::vector<std::int64_t>, 2> direct_sums_;
  std::vector<std::int64_t> saved_sums_;
  std::vector<Row> sweeps_;  // by number
  std::vector<std::int32_t> least_;
};

}  // namespace ferry::plan
