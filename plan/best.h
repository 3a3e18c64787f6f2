// The search of `best`: how far down the stairs of what to recompute (stairs.h), and how many bytes
// of what is kept to move, for one budget.
//
// What can leave by the turn is what the link carries in the time of the forward. A *way* is one
// share of that, with one window; its rungs are the steps of its stairs, and below the last of them
// more and more bytes move, until all do: then compute waits for the link. So each rung needs less
// memory than the one before it, and the first whose simulated step fits is found by bisection.
// Where to look is guessed from what the stairs say of the rungs that were simulated. Floors rule
// out rungs that cannot fit, and those that cannot be faster than what was found (floors.h).
//
// Plans that are equal in allocated bytes differ in fragmentation, which only the simulator knows.
// So there are several stairs: one of the spans' times as they are, others of times with noise.
// These come near the first: where spans of operators fit, they are tried if that comes near them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/candidates.h"
#include "plan/keep_trace.h"
#include "plan/module_segments.h"
#include "plan/picks.h"
#include "plan/stairs.h"
#include "plan/trials.h"

namespace ferry::plan {

class BestSearch {
 public:
  // The problem must outlive it; of the trace nothing need live on.
  BestSearch(const Problem& problem, const KeepTrace& keep, sim::Time keep_ns);

  // Tries candidates for the budget. What was found is in trials.all(). Of the stairs with noise
  // every n-th is tried, in each call others: for budgets that are close to each other.
  // `what`: what progress says, asked again and again.
  using What = std::function<std::string()>;
  void search(const What& what, const Limits& limits, Trials& trials, std::size_t every = 1);

 private:
  // Stairs, a share of what the link can carry, and a window, both in parts that the source says.
  struct Way {
    std::size_t stairs = 0;
    std::int64_t share = 0;
    std::int64_t window = 0;
    std::map<std::size_t, Cost> seen = {};  // by rung, for whatever budget
  };
  // Rungs below `least` are not the answer, and `fits` is known to be no worse than those above it;
  // at first that is one past the last.
  struct Bisection {
    Way* way;
    std::size_t least = 0;
    std::size_t fits = 0;
    int probes = 0;
    // The memory of a rung: seen, or at least that.
    std::size_t near = 0;
    std::int64_t near_bytes = 0;
    bool open() const { return least < fits; }
  };

  const Stairs& stairs(std::size_t number);
  std::size_t rungs(const Way& way);
  // What moves at a rung, less what the stairs say is saved at a time.
  std::int64_t freed_bytes(std::size_t rung, const Way& way);
  Candidate candidate(std::size_t rung, const Way& way);
  std::shared_ptr<const Outlined> outlined(const std::vector<Span>& spans);
  std::int64_t bytes_of(std::int64_t share) const;
  std::int64_t share_at(std::size_t rung, const Way& way);
  Bisection begin(Way& way, const Limits& limits);
  std::size_t guess(const Bisection& each, const Limits& limits);
  // The candidate to simulate next; none: the bisection has ended.
  std::optional<Candidate> next(Bisection& each, const Limits& limits, const Trials& trials);
  // Until each has ended.
  void bisect(std::vector<Bisection> open, const What& what, const Limits& limits, Trials& trials);
  bool comes_near(const Limits& limits, const Trials& trials) const;
  void try_least(const What& what, Trials& trials);
  Candidate moving_all(const std::vector<Span>& spans, std::int64_t window);

  const Problem& problem_;
  const sim::Time keep_ns_;
  std::vector<Span> spans_;
  std::int64_t forward_bytes_ = 0;  // that it saves
  std::deque<Stairs> stairs_;       // those that were asked for
  std::vector<std::string> calls_;  // if markers are calls of checkpoint: these; else none, and
  std::optional<ModuleSegments> segments_;
  std::int64_t link_bytes_ = 0;   // that can leave by the turn
  std::int64_t saved_bytes_ = 0;  // of all that could move
  std::vector<Way> ways_;
  std::size_t searches_ = 0;
  std::map<std::vector<std::string>, std::shared_ptr<const Outlined>> outlined_;  // by modules
};

}  // namespace ferry::plan
