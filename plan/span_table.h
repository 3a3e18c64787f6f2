// Which spans of operators to recompute, for every budget at once: a dynamic program over the
// operators from the last one on, and over the memory that is left for them.
//
//     least(i, m)  the least time of recomputes, for the operators from i on in m bytes:
//
//     keep i       least(i + 1, m - what i makes that is saved)
//     span [i, j)  the time of what runs again + least(j, m - what the span retains)
//
// either only where m has room for it: for what is beside (span_model.h), and for a span for all
// that it makes again, and what its replay begins from. A span *retains* what it makes that is read
// or saved after it, and what was made before it, saved by nobody, and is read by what runs again.
// An operator whose results are retained is kept: it does not run again, nor what only it needs. So
// an expensive operator that ends a span is free. A span may keep its expensive operators as well:
// in a residual block the sum's first summand is read by all that comes between, and dropping it
// need not drop that. And an operator may run again for a part of what it makes, a mask say, while
// the rest is retained.
//
// Memory is counted in slots. A storage has so many that sums are right, not each by itself. The
// copies of a link are not in it: whoever moves bytes asks for a budget with as many more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/plan.h"
#include "plan/span_model.h"

namespace ferry::plan {

// The spans that are worth a thought, whatever the budget.
class SpanChoices {
 public:
  explicit SpanChoices(SpanModel model);

  static constexpr std::uint32_t kNoPrice = ~std::uint32_t{0};

  struct Choice {
    std::uint32_t begin = 0;  // operators [begin, end)
    std::uint32_t end = 0;
    std::int32_t ns = 0;            // in units
    std::int32_t needed_slots = 0;  // or nothing fits
    std::int32_t retained_slots = 0;
    std::uint32_t price = kNoPrice;  // operators dearer than that are kept
  };

  const SpanModel& model() const { return model_; }
  std::size_t operators() const { return model_.operators.size(); }
  bool has_prices() const { return prices_.size() > 1; }
  std::int32_t slots() const { return slots_; }  // where nothing runs again
  // In so many slots fit so many bytes, rounded down; at most all of them.
  std::int32_t slots_of(std::int64_t bytes) const;
  std::int64_t slot_bytes() const { return slot_bytes_; }
  sim::Time unit_ns() const { return unit_ns_; }
  std::int64_t peak_bytes() const { return model_.peak_bytes; }
  // Those that begin with an operator, short before long.
  const std::vector<Choice>& from(std::size_t op) const { return from_[op]; }
  std::int32_t kept_slots(std::size_t op) const { return saved_slots_[op]; }
  std::int32_t needed_slots(std::size_t op) const { return needed_slots_[op]; }
  sim::Time ns(std::size_t op) const { return model_.operators[op].ns; }
  std::int64_t made_bytes(std::size_t op) const;
  bool runs_again(std::size_t op) const { return model_.operators[op].again; }
  bool joins_next(std::size_t op) const { return model_.operators[op].joins_next; }
  // The place of its first operator in the program; of one past the last, the program's number.
  std::uint64_t first_place(std::size_t op) const { return places_[op]; }
  // As a plan has it: what does not run again is kept.
  PlanSpan span(const Choice& choice) const;

 private:
  struct Weighed {
    bool useful = false;
    sim::Time ns = 0;
    std::int64_t held = 0;      // bytes that nobody saves and its replay begins from
    std::int32_t retained = 0;  // slots of what it makes
  };
  // The weighing that marked a storage or an operator last, by number.
  struct Marks {
    std::vector<std::uint32_t> needed, held, runs;
    std::uint32_t now = 0;
  };
  Marks no_marks() const;
  void set_prices();
  bool is_kept(std::size_t op, std::size_t end, std::uint32_t price) const;
  // Of what the operator makes and some node saves: bytes that a span up to there drops.
  std::int64_t dropped_bytes(const ModelOperator& op, std::size_t end) const;
  Weighed weigh(std::size_t begin, std::size_t end, std::uint32_t price, Marks& marks) const;
  void add_from(std::size_t begin, Marks& marks);
  std::int32_t slots_above(std::int64_t bytes) const;

  SpanModel model_;
  std::int64_t slot_bytes_ = 1;
  std::int32_t slots_ = 0;
  std::size_t longest_ = 0;
  sim::Time unit_ns_ = 1;
  std::vector<std::uint64_t> places_ = {0};               // of the program's, by operator
  std::vector<std::int32_t> saved_slots_, needed_slots_;  // by operator
  std::vector<std::size_t> kept_until_;  // by operator: a span that ends there or before keeps it
  std::vector<std::uint32_t> price_;     // by operator: of all that it makes
  // Up to these spans drop what operators make; the first: any price, but whole operators only.
  std::vector<std::uint32_t> prices_;
  std::vector<std::vector<Choice>> from_;  // by first operator
};

class SpanTable {
 public:
  // Times with noise of some percent, the same for the same seed; 0: none. `priced`: with the spans
  // that keep what is dear. The choices must outlive it.
  SpanTable(const SpanChoices& choices, std::uint64_t seed, bool priced = true);

  // The time of what runs again, as the operators' times have it; `slots` must fit something.
  sim::Time ns(std::int32_t slots) const { return at(0)[slots] * choices_.unit_ns(); }
  // The fastest in so many slots, in order; nothing where nothing fits.
  std::vector<PlanSpan> spans(std::int32_t slots) const;
  bool fits(std::int32_t slots) const { return at(0)[slots] < kNever; }
  // The fewest that something fits in.
  std::int32_t least_slots() const;

 private:
  static constexpr std::int32_t kNever = std::int32_t{1} << 29;

  const std::int32_t* at(std::size_t op) const { return &least_[op * width_]; }
  bool has(const SpanChoices::Choice& choice) const {
    return priced_ || choice.price == SpanChoices::kNoPrice;
  }
  std::int32_t ns(const SpanChoices::Choice& choice) const;

  const SpanChoices& choices_;
  const bool priced_;
  const std::size_t width_;
  std::vector<std::int32_t> percent_;  // by operator that a span begins with
  std::vector<std::int32_t> least_;    // by operator, then by slots left
};

}  // namespace ferry::plan
