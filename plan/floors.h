// Floors: lower bounds on the memory and the step time of one candidate, before it is simulated. A
// search does not simulate a candidate whose floor is above the budget, or above a step time that
// another candidate reached. This never changes the result of the search.
//
// A floor is the bound of docs/explanation/lower-bound.md for a plan whose choices are known:
//
//     kept        The bytes are in memory until the last kernel that reads them.
//     offloaded   Bytes that must be absent at a kernel were copied out before it began. When a
//                 tensor is saved, all bytes sent before it were copied, except those in the
//                 window, because computing waits for the window.
//     recomputed  The segment runs up to its last recomputed tensor, before the first of them is
//                 unpacked. The results are in memory from then until they are unpacked.
//
// A storage whose tensors have different choices is ignored. If the program is outside the proof,
// or the plan has spans, the floor has the optimizer's step only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/program.h"
#include "plan/candidates.h"
#include "plan/keep_trace.h"
#include "plan/turns.h"
#include "scenarios/hardware.h"

namespace ferry::plan {

struct Floor {
  sim::Time step_ns = 0;
  std::int64_t bytes = 0;
};

class Floors {
 public:
  // A plan's choice for a storage. kSeveral: its saved tensors have different choices.
  enum class Fate : std::uint8_t { kUnsaved, kKept, kMoved, kAgain, kSeveral };

  // `trace` is the program's, with any segments. The arguments may be destroyed afterwards.
  Floors(const Program& program, const Hardware& hardware, KeepTrace trace);

  // `survey` has the segments that the candidate's mix refers to.
  Floor of(const Candidate& candidate, const Survey& survey, std::int64_t budget_bytes) const;

 private:
  // By kernel. `held`, `moved` and `again` have differences: a value at a kernel is their sum so
  // far.
  struct Sums {
    std::vector<Fate> fates;          // by storage, not by kernel
    std::vector<std::int64_t> held;   // bytes that are kept, or recomputed and not yet unpacked
    std::vector<std::int64_t> moved;  // bytes that are offloaded, absent or not
    std::vector<sim::Time> again;     // time of the recomputes that come later
    std::vector<sim::Time> begins;    // the kernel begins no earlier (no differences)
  };

  void add_storages(const Mix& mix, const Survey& survey, Sums& sums) const;
  void add_recomputes(const Mix& mix, const Survey& survey, Sums& sums) const;
  static void add_held(const std::vector<Absence>& absences, std::uint32_t begin, std::uint32_t end,
                       Sums& sums);
  void add_waits(const Candidate& candidate, const Survey& survey, Sums& sums) const;
  sim::Time out_ns(std::int64_t bytes) const;

  KeepTrace trace_;
  std::optional<Turns> turns_;
  std::int64_t link_bytes_per_us_ = 1;
};

}  // namespace ferry::plan
