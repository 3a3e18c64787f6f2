// What is certain of one plan before it is simulated: it needs no less memory than its floor, and
// within a budget it takes no less time. So a search need not simulate a plan whose floor is above
// the budget, or above the step that another plan was seen to take. What is found is the same.
//
// It is the bound of docs/lower-bound.md, for a plan whose choices are known:
//
//     kept        its bytes are in memory until the last kernel that reads them
//     offloaded   what of it must be absent at a turn was copied out before the turn began; and
//                 where it is packed, what was sent before was copied but for a window of it, for
//                 compute waits for that
//     recomputed  the segment runs again up to its last such tensor, before the first is unpacked;
//                 what it makes is in memory from then until it is unpacked
//
// A storage of which some tensors have another choice than others is left out, and so is memory
// altogether where the program is outside the proof: then a floor is zero. So it is for a plan with
// spans of operators.
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
  // What the plan does with a storage.
  enum class Fate : std::uint8_t { kUnsaved, kKept, kMoved, kAgain, kSeveral };

  // The trace is of the program, with whatever segments. None of it need live on.
  Floors(const Program& program, const Hardware& hardware, KeepTrace trace);

  // `survey` has the segments that the candidate's mix is of.
  Floor of(const Candidate& candidate, const Survey& survey, std::int64_t budget_bytes) const;

 private:
  // Kernel by kernel, summed from changes at the turns where they begin and end.
  struct Sums {
    std::vector<Fate> fates;          // by storage
    std::vector<std::int64_t> held;   // bytes of what is kept, or made again
    std::vector<std::int64_t> moved;  // bytes of what is offloaded, absent or not
    std::vector<sim::Time> again;     // of recomputes that come later
    std::vector<sim::Time> begins;    // not summed: no earlier than that
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
