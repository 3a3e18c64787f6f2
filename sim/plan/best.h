// The search of `best`: how high to climb the ladder of what to recompute (ladder.h), and how many
// bytes of what is kept to move, for one budget.
//
// What can leave by the turn is what the link carries in the time of the forward. For each of a few
// shares of that, and each of a few windows, the lowest rung whose simulated step fits is found by
// bisection; the simulator judges each step of it. (Where nothing is recomputed it is `budget`.) Of
// the storages that stay, those move that are needed back last, evenly over the first 85 % of their
// bytes, so that the link has time.
//
// Plans that are equal in allocated bytes differ in fragmentation, which only the simulator knows.
// So several ladders are climbed: one of the spans' times as they are, others of times with noise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "formats/program.h"
#include "scenarios/hardware.h"
#include "sim/plan/candidates.h"
#include "sim/plan/ladder.h"
#include "sim/plan/picks.h"

namespace ferry::plan {

class BestSearch {
 public:
  // Both must outlive it.
  BestSearch(const Program& program, const Hardware& hardware);

  // Tries candidates by their costs, and returns all that it tried.
  using CostsOf = std::function<std::vector<Cost>(const std::vector<Candidate>&)>;
  std::vector<Candidate> search(const Limits& limits, const CostsOf& costs_of);

 private:
  // A ladder, a share of what the link can carry, and a window, both in parts that the source says.
  struct Way {
    std::size_t ladder = 0;
    std::int64_t share = 0;
    std::int64_t window = 0;
  };
  // Rungs below `least` do not fit, and `fits` does; at first that is one past the last.
  struct Bisection {
    Way way;
    std::size_t least = 1;
    std::size_t fits = 0;
  };

  Candidate candidate(std::size_t rung, const Way& way);
  std::shared_ptr<const Outlined> outlined(const std::vector<Span>& spans);
  void move_some(Mix& mix, const Survey& survey, const Way& way, CoreOptions& options) const;

  const Program& program_;
  const Hardware& hardware_;
  std::vector<Ladder> ladders_;
  std::vector<std::string> calls_;  // if markers are calls of checkpoint: these
  std::int64_t link_bytes_ = 0;     // that can leave by the turn
  std::map<std::vector<std::string>, std::shared_ptr<const Outlined>> outlined_;  // by modules
};

}  // namespace ferry::plan
