// A lower bound on the step time of every plan that fits a budget: a certificate of how good a plan
// is. docs/explanation/lower-bound.md has the proof.
//
// Take any kernel k of the step. When the host issues k, some bytes are on the device in every plan
// (turns.h). Later kernels read other bytes too. If these exceed the rest of the budget, some are
// absent: each absent byte was copied out before k began, or is recomputed after k. The least time
// for this is bounded by a fractional knapsack over operators. At the kernels where the knapsack
// costs most, a minimum cut gives a higher bound, because recomputed operators need their inputs
// (recompute_cuts.h). The bound is the largest value over all kernels.
//
//     kernels before k,            k, and the kernels after     recomputes of bytes that are
//     the link copies meanwhile    it; a wait for copies        absent and were not copied
//
// Times are integers, rounded down. The budget counts reserved bytes, which are never fewer than
// the bytes in use. The bound ignores fragments, copies back and the host's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/program.h"
#include "plan/keep_trace.h"
#include "plan/recompute_cuts.h"
#include "plan/turns.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

// Returns why the proof does not cover the program ("it moves a global"); empty: it does. The proof
// needs a program that computes on one stream, whose backward makes no graph, and whose recomputes
// do the same as the first run. For other programs the bound is the computing time alone.
std::string outside_proof(const Program& program);

// Bounds that hold for every plan with a budget.
struct Certificate {
  std::optional<sim::Time> step_ns;  // no plan is faster; no value: no plan fits
  std::int64_t least_bytes = 0;      // no plan reserves less
  std::string outside_proof;         // why the bound ignores memory; empty: it does not
};
// `trace` is the program's. No value: the step fails even if everything is kept.
std::optional<Certificate> certify(const Program& program, const Hardware& hardware,
                                   const KeepTrace& trace, std::int64_t budget_bytes);

class LowerBound {
 public:
  // `trace.fails` must be false. `memory` is true if the proof covers the program.
  LowerBound(const KeepTrace& trace, const Hardware& hardware, bool memory);

  // The time of computing alone, with unlimited memory.
  sim::Time compute_ns() const { return compute_ns_; }
  // No plan needs less memory.
  std::int64_t least_bytes() const { return least_bytes_; }
  // No plan that reserves at most `budget_bytes` is faster; no value: no plan fits.
  std::optional<sim::Time> step_ns(std::int64_t budget_bytes) const;

 private:
  // A kernel whose results a plan may drop. Recomputing them costs `ns` and brings back at most
  // `bytes`.
  struct Maker {
    sim::Time ns = 0;
    std::int64_t bytes = 0;
  };
  // From kernel `turn` on, `bytes` more of a maker's results may be absent (or fewer, if negative).
  struct Change {
    std::uint32_t turn = 0;
    std::uint32_t maker = 0;
    std::int64_t bytes = 0;
  };

  void add(std::uint32_t maker, const std::vector<Absence>& absences);
  void order_makers(const KeepTrace& trace);
  bool cheaper_than_link(const Maker& maker) const;
  class Stock;
  // The knapsack's lower bound on the step time, at the kernel `turn`.
  struct Priced {
    sim::Time ns = 0;
    std::uint32_t turn = 0;
  };
  // Returns the kernels at which more bytes must be absent than the link can have copied by then.
  std::vector<Priced> priced(std::int64_t budget_bytes) const;
  // The most bytes that the link can copy before the kernel begins.
  std::int64_t copied_bytes(std::uint32_t turn) const;

  std::int64_t link_bytes_per_us_ = 1;
  sim::Time compute_ns_ = 0;
  std::int64_t least_bytes_ = 0;
  std::vector<sim::Time> begins_;  // by kernel, as in Turns; so are rest_ and needed_
  std::vector<sim::Time> rest_;
  std::vector<std::int64_t> needed_;
  std::vector<Maker> makers_;              // sorted by time for a byte
  std::size_t cheap_ = 0;                  // how many makers cost less for a byte than the link
  std::vector<Change> changes_;            // in order of their kernels
  std::optional<RecomputeInputs> inputs_;  // no value: the bound ignores memory
};

}  // namespace ferry::plan
