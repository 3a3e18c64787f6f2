// A lower bound on the step time of every plan that fits a budget: a certificate of how good a plan
// is. docs/lower-bound.md proves it, decision by decision.
//
// Take any kernel of the step, the *turn*. When it is issued, some bytes must be on the device in
// every plan. Of the others that later kernels read, what is beyond the budget must be absent, and
// come back after the turn: each byte was copied out before the turn began, or is recomputed after
// it. The cheapest way to do that is at least a fractional knapsack of ops; of the turns where that
// is the dearest a minimum cut says more (recompute_cuts.h), for ops need something to read. The
// largest over all turns is the bound.
//
//     kernels before the turn,     the turn, and the kernels    recomputes of what is
//     the link is free meanwhile   after it; a wait for copies  absent and was not copied
//
// Times are integers and rounded down; the budget is of reserved bytes, which are never fewer than
// those in use.
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

// The proof asks of a program that it computes on one stream, that its backward makes no graph, and
// that what runs again computes what ran first. Returns what is otherwise ("it moves a global"),
// and then the bound is that of computing alone; empty: nothing is.
std::string outside_proof(const Program& program);

// What is certain of every plan for a budget.
struct Certificate {
  std::optional<sim::Time> step_ns;  // none is faster; no value: none fits
  std::int64_t least_bytes = 0;      // none reserves less
  std::string outside_proof;         // why memory is left out; empty: it is not
};
// `trace` is the program's. No value: the step fails where everything is kept.
std::optional<Certificate> certify(const Program& program, const Hardware& hardware,
                                   const KeepTrace& trace, std::int64_t budget_bytes);

class LowerBound {
 public:
  // The trace must not fail. `memory`: the program is within the proof.
  LowerBound(const KeepTrace& trace, const Hardware& hardware, bool memory);

  // What computing alone takes, whatever the memory.
  sim::Time compute_ns() const { return compute_ns_; }
  // No plan needs less.
  std::int64_t least_bytes() const { return least_bytes_; }
  // No plan that reserves at most so many bytes is faster; none: no plan fits.
  std::optional<sim::Time> step_ns(std::int64_t budget_bytes) const;

 private:
  // A kernel that makes what a plan may leave out: recomputing it costs `ns` and brings at most
  // `bytes` back.
  struct Maker {
    sim::Time ns = 0;
    std::int64_t bytes = 0;
  };
  // From kernel `turn` on, so many bytes more of those of a maker may be absent.
  struct Change {
    std::uint32_t turn = 0;
    std::uint32_t maker = 0;
    std::int64_t bytes = 0;
  };

  void add(std::uint32_t maker, const std::vector<Absence>& absences);
  void order_makers(const KeepTrace& trace);
  bool cheaper_than_link(const Maker& maker) const;
  class Stock;
  // What a turn costs, at least.
  struct Priced {
    sim::Time ns = 0;
    std::uint32_t turn = 0;
  };
  // Those where bytes must be absent that the link does not carry by then, by the knapsack.
  std::vector<Priced> priced(std::int64_t budget_bytes) const;
  std::int64_t copied_bytes(std::uint32_t turn) const;  // by its begin, at most

  std::int64_t link_bytes_per_us_ = 1;
  sim::Time compute_ns_ = 0;
  std::int64_t least_bytes_ = 0;
  std::vector<sim::Time> begins_;     // by kernel: no plan begins it earlier
  std::vector<sim::Time> rest_;       // what it and those after it take
  std::vector<std::int64_t> needed_;  // by kernel: the bytes that every plan has then
  std::vector<Maker> makers_;         // by time for a byte; past cheap_ the link is cheaper
  std::size_t cheap_ = 0;
  std::vector<Change> changes_;            // by turn
  std::optional<RecomputeInputs> inputs_;  // none: no memory
};

}  // namespace ferry::plan
