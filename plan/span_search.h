// The search of spans of operators for one budget: how much memory the table of spans
// (span_table.h) is asked to fit in, and how many bytes of what it keeps move.
//
// The table says the time and the memory of its spans closely, but not what the allocator makes of
// them. So the largest memory whose simulated step fits is found by bisection: a *level*, in slots
// of the table. A *way* is a table, and how what it keeps moves (moves.h), and each has bisections
// of its own. Where something moves, the table is asked for as much more. Tables of times with
// noise give other spans, of about the same time, and other fragments.
//
// A level fits that reserves no more than the budget. What would reserve more may run at it, by
// giving back and taking anew, and that takes about as long at any level: so each way is bisected a
// second time for the largest level that runs. Of a training that is the only time: what its first
// step gave back the steps that are judged need not give back again. Levels that are slower than
// what was found, by what the table says of them, are not tried; so one try tells, as a rule, of a
// way that is no better. Last the search goes on from the fastest by single operators
// (span_climb.cpp), for no level uses what fragments leave free.
//
// Below the lowest level that the table has, more and more bytes move, until all do. Where one
// level of spans has nothing, or little memory is left, a table of nested spans (nest_table.h) is
// asked as the others are. Where the answer is far from what the table says, for near the least
// memory fragments decide, levels of every table are tried in a row. And where nothing fits then,
// what is a step away from what came nearest (span_steps.h), and so on: of a small program that
// comes to all sets of spans.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/candidates.h"
#include "plan/keep_trace.h"
#include "plan/picks.h"
#include "plan/span_steps.h"
#include "plan/span_tables.h"
#include "plan/trials.h"
#include "scenarios/policy.h"

namespace ferry::plan {

inline bool nests(const PlanSpan& span) { return !span.inner.empty(); }

// As InTime (moves.h), but `ahead` is a part of all packs; none: what moves, moves evenly.
struct PartsInTime {
  std::int64_t pace = 0;
  std::size_t ahead = 0;
  std::int64_t until = 100;
  std::int64_t room = 0;  // not 0: for so many of the largest, in place of packs
};

class SpanSearch {
 public:
  // The problem must outlive it; of the trace nothing need live on. The tables are of the problem's
  // whole program on its hardware.
  SpanSearch(const Problem& problem, std::shared_ptr<SpanTables> tables, const KeepTrace& keep,
             const Cost& kept);

  // How much of what it knows a search tries, in each call other parts of it.
  struct Breadth {
    std::size_t ways = 1;         // one of so many ways without noise,
    std::size_t noise = 1;        // and of the tables with noise
    sim::Time least_won = 2'000;  // the part of the step for which a bisection goes on
  };
  // Tries candidates for the budget. What was found is in trials.all().
  using What = std::function<std::string()>;
  void search(const What& what, const Limits& limits, Trials& trials, const Breadth& breadth);
  // The plans of other systems, of which nothing moves (field_spans.h).
  std::vector<Candidate> of_field(Policy policy);
  // Goes on from the best that fit to what is a step away and runs less again. What fragments leave
  // free no level of a table uses.
  void climb(const What& what, const Limits& limits, Trials& trials);
  // For a budget that nothing which was tried fits in.
  void walk(const What& what, const Limits& limits, Trials& trials);

 private:
  struct Way {
    std::size_t table = 0;
    std::int64_t share = 0;   // in hundredths of what the link can carry
    std::int64_t window = 0;  // of the largest that moves
    PartsInTime in_time = {};
    bool nested = false;                     // the table is that of nested spans
    std::map<std::int32_t, Cost> seen = {};  // by level, for whatever budget
  };
  // Levels from `fails` on do not fit. `fits` does, or it and those below are too slow to be of
  // use; at first it is below the lowest.
  struct Bisection {
    Way* way;
    bool runs = false;  // a level fits as well if it runs at the budget
    std::int32_t fits = 0;
    std::int32_t fails = 0;
    std::int32_t near = 0;  // what was asked for last, and its bytes
    std::int64_t near_bytes = 0;
    int probes = 0;
    sim::Time least_won = Breadth().least_won;
    sim::Time seen_ns = 0;  // the longest step that does not fit
    sim::Time over_ns = 0;  // what the last took beyond what the table says
  };

  std::int32_t least_slots(const Way& way) const;
  std::int32_t lowest(const Way& way) const;
  std::int64_t moved_bytes(std::int32_t level, const Way& way) const;
  std::vector<PlanSpan> spans(std::int32_t level, const Way& way);
  struct Try {
    std::int32_t level = 0;
    Way way;
  };
  std::vector<Candidate> candidates(const std::vector<Try>& tries);
  struct Climb;
  void climb_one(const What& what, const Limits& limits, Trials& trials, Climb& from);
  Candidate candidate(const Try& of, const std::shared_ptr<const Outlined>& cut) const;
  static Candidate moving(std::int64_t bytes, std::int64_t window,
                          const std::shared_ptr<const Outlined>& cut);
  Candidate moving_in_time(const Way& way, const std::shared_ptr<const Outlined>& cut) const;
  void add_ways();
  Bisection begin(Way& way, const Limits& limits, bool runs) const;
  std::int32_t guess(const Bisection& each, const Limits& limits) const;
  sim::Time told_ns(std::int32_t level, const Way& way) const;
  std::int32_t too_slow(sim::Time step_ns, std::int32_t most, const Way& way) const;
  void take(const Cost& cost, const Limits& limits, Bisection& each) const;
  // Then its next level is `near`.
  bool goes_on(Bisection& each, const Limits& limits, const Trials& trials) const;

  // Of the way's table.
  bool fits(std::int32_t level, const Way& way) const;
  sim::Time ns(std::int32_t level, const Way& way) const;
  // True if without fragments, and if all moved in time that can, it would be a part faster.
  bool may_win(const Cost& best, const Limits& limits) const;
  void bisect_all(bool noisy, bool runs, const What& what, const Limits& limits, Trials& trials,
                  const Breadth& breadth);
  // Until each has ended.
  void bisect(std::vector<Bisection> ways, const What& what, const Limits& limits, Trials& trials);

  bool is_far(const Limits& limits, const Trials& trials) const;
  void nest(const What& what, const Limits& limits, Trials& trials);
  void scan(const What& what, const Limits& limits, Trials& trials, const Breadth& breadth);

  const Problem& problem_;
  const std::shared_ptr<SpanTables> tables_;
  const SpanChoices& choices_;
  const SpanSteps steps_{choices_};
  const Cost kept_;
  std::vector<sim::Time> ends_;   // kernel_ends
  sim::Time turn_ns_ = 0;         // when backward begins, of these
  std::int64_t link_bytes_ = 0;   // that can leave by the turn
  std::int64_t saved_bytes_ = 0;  // of all that could move
  std::vector<Way> ways_, nested_ways_;
  std::size_t searches_ = 0;
  std::map<const Tried*, Try> made_;  // how what was tried moves
};

}  // namespace ferry::plan
