// Which nested spans of operators to recompute, for every budget at once: a dynamic program over
// the blocks of a forward (nest_blocks.h), and over the memory that is left for them. For budgets
// below those that one level of spans (span_table.h) has a plan for.
//
//     sweep(i, l, m)  the least time of what runs again for the backward of the blocks [i, l),
//                     where what they begin from is there, in m bytes: the least of
//
//       i direct      its time + sweep(i + 1, l, m - what it makes for backward)
//       through       for each j: the time of [i, j) + sweep(j, l, m - frontier)
//         [i, j)        + the lesser of sweep(i, j, m), which makes the frontier once more where
//                         its own nodes save it, and sweep(i, j, m - frontier) without that
//
//     least(i, m)     the same for the whole forward from i on, which keeps i, or has an outermost
//                     span [i, j): the lesser of its sweeps + least(j, m - what stays of it)
//
// Where each block saves what it makes, and `through` begins the frontier anew, this is rotor's
// recursion (arXiv 1911.13214) but for the last operator of a span, whose result is kept.
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
  // The choices must outlive it. It counts memory in larger slots than they do.
  explicit NestTable(const SpanChoices& choices);

  // All in slots of the choices.
  bool fits(std::int32_t slots) const { return least(0)[own(slots)] < kNever; }
  std::int32_t least_slots() const;
  // The time of what runs again; it must fit.
  sim::Time ns(std::int32_t slots) const { return least(0)[own(slots)] * unit_ns_; }
  // The fastest in so many, in order; nothing where nothing fits.
  std::vector<PlanSpan> spans(std::int32_t slots) const;

 private:
  using Row = std::vector<std::int32_t>;  // least times, by slots
  // A sweep of the blocks [begin, end). `held`: what is asked for from `end` on is.
  struct Sweep {
    std::size_t begin = 0;
    std::size_t end = 0;
    bool held = false;
  };
  // Costs and slots of a step of a sweep.
  struct Step {
    std::int32_t ns = 0;
    std::int32_t needed = 0;
    std::int32_t taken = 0;  // from then on
  };

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
  // Of an outermost span: slots that stay for its sweep, and for what comes after it as well.
  struct Stays {
    std::int32_t own = 0;
    std::int32_t all = 0;
  };
  Stays stays(std::size_t begin, std::size_t end) const;
  void fill(const Sweep& of);
  void fill_least();
  // Of the blocks of `of`, in so many slots, within a span that keeps `around`.
  std::vector<PlanSpan> inner(Sweep of, std::size_t left, const std::vector<std::uint64_t>& around,
                              std::size_t depth) const;
  PlanSpan span(const Sweep& of, std::size_t left, const std::vector<std::uint64_t>& around,
                std::size_t depth) const;

  const SpanChoices& choices_;
  const NestBlocks blocks_;
  std::size_t width_ = 1;
  std::int64_t slot_bytes_ = 1;
  sim::Time unit_ns_ = 1;
  // Sums of a sweep's direct blocks, so that rounding does not add up: by end, then by block.
  std::array<std::vector<std::int64_t>, 2> direct_sums_;
  std::vector<std::int64_t> saved_sums_;
  std::vector<Row> sweeps_;  // by number
  std::vector<std::int32_t> least_;
};

}  // namespace ferry::plan
