// Chooses spans of operators to recompute (not nested), for every budget at once, by dynamic
// programming: over the operators from the last one to the first, and over the memory left for
// them.
//
//     least(i, m)  the least time of recomputes for the operators from i on, in m bytes of memory:
//                  the minimum of
//
//     keep i       least(i + 1, m - the saved bytes that i makes)
//     span [i, j)  the time of its recompute + least(j, m - the bytes that the span retains)
//
// Both cases need room in m for the other memory (span_model.h). A span also needs room for all
// that it recomputes, and for the inputs of its replay. A span *retains* its results that are read
// or saved after it, and unsaved results of earlier operators that its recompute reads. An operator
// whose results are retained is kept: it is not recomputed, and neither are operators that only it
// needs. So an expensive operator at the end of a span costs nothing. A span may also keep its
// expensive operators, by a limit on time for a byte (`price`): in a residual block every operator
// in between reads the first summand, and a span that drops the summand need not drop the others.
// An operator may be recomputed for a part of its results (a mask, say) while the rest is retained.
//
// Memory is counted in slots, rounded so that sums are right, not each storage by itself. Offload
// is not modelled: a search that offloads bytes asks for a budget with as many bytes more.
// Fragments are not modelled either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/plan.h"
#include "plan/span_model.h"

namespace ferry::plan {

// All spans that may be useful, for any budget, with their times and memory. A span is useful if
// its first operator is recomputed, if its last one matters, and if it retains less than keeping
// would.
class SpanChoices {
 public:
  explicit SpanChoices(SpanModel model);

  static constexpr std::uint32_t kNoPrice = ~std::uint32_t{0};  // no limit on time for a byte

  struct Choice {
    std::uint32_t begin = 0;  // operators [begin, end)
    std::uint32_t end = 0;
    std::int32_t ns = 0;            // time of the recompute, in multiples of unit_ns
    std::int32_t needed_slots = 0;  // it fits in at least so many
    std::int32_t retained_slots = 0;
    std::uint32_t price = kNoPrice;  // operators with more time for a byte are kept; kNoPrice: none
  };

  const SpanModel& model() const { return model_; }
  std::size_t operators() const { return model_.operators.size(); }
  bool has_prices() const { return prices_.size() > 1; }
  std::int32_t slots() const { return slots_; }  // enough to keep everything
  // Returns the slots of a budget of `bytes`, rounded down and at most slots().
  std::int32_t slots_of(std::int64_t bytes) const;
  std::int64_t slot_bytes() const { return slot_bytes_; }
  sim::Time unit_ns() const { return unit_ns_; }
  std::int64_t peak_bytes() const { return model_.peak_bytes; }
  // The spans that begin with an operator, the shortest first.
  const std::vector<Choice>& from(std::size_t op) const { return from_[op]; }
  std::int32_t kept_slots(std::size_t op) const { return saved_slots_[op]; }
  std::int32_t needed_slots(std::size_t op) const { return needed_slots_[op]; }
  sim::Time ns(std::size_t op) const { return model_.operators[op].ns; }
  std::int64_t made_bytes(std::size_t op) const;
  bool runs_again(std::size_t op) const { return model_.operators[op].again; }
  bool joins_next(std::size_t op) const { return model_.operators[op].joins_next; }
  // The index in the program of the operator's first operator (an operator here may be a group).
  // One past the last: the program's number of operators.
  std::uint64_t first_place(std::size_t op) const { return places_[op]; }
  // Returns the span for a plan, without operator names. Operators that are not recomputed are
  // kept.
  PlanSpan span(const Choice& choice) const;

 private:
  struct Weighed {
    bool useful = false;
    sim::Time ns = 0;
    std::int64_t held = 0;      // unsaved bytes that its replay reads
    std::int32_t retained = 0;  // slots of its results that are kept
  };
  // For each storage or operator, the number of the `weigh` call that marked it last. So the marks
  // of earlier calls need not be cleared.
  struct Marks {
    std::vector<std::uint32_t> needed, held, runs;
    std::uint32_t now = 0;
  };
  Marks no_marks() const;
  void set_prices();
  bool is_kept(std::size_t op, std::size_t end, std::uint32_t price) const;
  // Returns the saved bytes of the operator's results that a span which ends at `end` drops.
  std::int64_t dropped_bytes(const ModelOperator& op, std::size_t end) const;
  Weighed weigh(std::size_t begin, std::size_t end, std::uint32_t price, Marks& marks) const;
  void add_from(std::size_t begin, Marks& marks);
  std::int32_t slots_above(std::int64_t bytes) const;

  SpanModel model_;
  std::int64_t slot_bytes_ = 1;
  std::int32_t slots_ = 0;
  std::size_t longest_ = 0;
  sim::Time unit_ns_ = 1;
  std::vector<std::uint64_t> places_ = {0};               // first_place, by operator
  std::vector<std::int32_t> saved_slots_, needed_slots_;  // by operator
  std::vector<std::size_t> kept_until_;  // by operator: a span that ends there or before keeps it
  std::vector<std::uint32_t> price_;     // by operator: time for a byte of all its results
  // The limits on time for a byte. With the first, kNoPrice, spans drop at any price, but never a
  // part of an operator's results.
  std::vector<std::uint32_t> prices_;
  std::vector<std::vector<Choice>> from_;  // by first operator
};

class SpanTable {
 public:
  // Fills the table. `seed` adds random noise to the times (0: none); equal seeds give equal
  // tables. `priced` includes the spans that keep expensive operators. The choices must outlive the
  // table.
  SpanTable(const SpanChoices& choices, std::uint64_t seed, bool priced = true);

  // The least time of recomputes, with the table's noise. fits(slots) must be true.
  sim::Time ns(std::int32_t slots) const { return at(0)[slots] * choices_.unit_ns(); }
  // The fastest set of spans in so many slots, in order; empty if nothing fits.
  std::vector<PlanSpan> spans(std::int32_t slots) const;
  bool fits(std::int32_t slots) const { return at(0)[slots] < kNever; }
  // The fewest slots that something fits in.
  std::int32_t least_slots() const;

 private:
  // The time of an entry that does not fit, in units. It must be larger than the time of any set of
  // spans, and its sum with a span's time must fit into 32 bits.
  static constexpr std::int32_t kNever = std::int32_t{1} << 29;

  const std::int32_t* at(std::size_t op) const { return &least_[op * width_]; }
  bool has(const SpanChoices::Choice& choice) const {
    return priced_ || choice.price == SpanChoices::kNoPrice;
  }
  std::int32_t ns(const SpanChoices::Choice& choice) const;

  const SpanChoices& choices_;
  const bool priced_;
  const std::size_t width_;
  std::vector<std::int32_t> percent_;  // noise, by the first operator of a span
  std::vector<std::int32_t> least_;    // by operator, then by slots left
};

}  // namespace ferry::plan
