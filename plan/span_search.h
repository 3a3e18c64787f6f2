// The search over spans of operators for one budget. It combines tables of spans (span_table.h,
// nest_table.h) with selections of tensors to offload (moves.h), and simulates the results.
//
// `search` bisects. A table predicts the time and memory of its spans closely, but not the
// allocator's fragments. So the largest memory whose simulated step fits is found by bisection over
// the table's slots (`level` in the code). A *combination* (`Way` in the code) is a table and a
// selection for offload; each has its own bisections. The more bytes it offloads, the more slots
// the first guess has. Tables with noise give other spans of about the same time, and so other
// fragments. Below the fewest slots of a table, more and more bytes move, until all do.
//
// A candidate fits if it reserves no more than the budget. One that reserves more may still run, if
// the allocator frees its cache; this costs about the same time at any number of slots. So each
// combination is bisected twice: for the most slots that fit, and for the most that run. A training
// is bisected only for the second: cache that its first step freed need not be freed again in the
// step that is judged. If allocated bytes are judged, only the first is done. Slots at which the
// table predicts no better time than the best known plan are not simulated, so a combination that
// cannot win usually costs one simulation.
//
// Four more searches have conditions of their own:
//
//     nest    bisects the table of nested spans: near the least memory, or if the best plan is far
//             from the table's prediction
//     scan    simulates evenly spaced slots of every table: if the best plan is far from the
//             prediction, because fragments then decide
//     climb   climbs from the fastest plans that fit, one operator at a time, and uses memory that
//             fragments leave free
//     walk    best-first search over sets of spans: if nothing fits, or the program is small
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

// This is like InTime (moves.h), but the prefetch distance is 1/ahead of all saved tensors. If
// `ahead` is 0, tensors are offloaded evenly instead.
struct PartsInTime {
  std::int64_t pace = 0;
  std::size_t ahead = 0;
  std::int64_t until = 100;
  std::int64_t room = 0;
};

class SpanSearch {
 public:
  // The problem must outlive the search; the trace need not. The tables must be those of the
  // problem's whole program on its hardware. `kept` is the cost of keeping everything.
  SpanSearch(const Problem& problem, std::shared_ptr<SpanTables> tables, const KeepTrace& keep,
             const Cost& kept);

  // Limits what a search tries. Each call of `search` tries another part of the combinations.
  struct Breadth {
    std::size_t ways = 1;         // every n-th combination without noise
    std::size_t noise = 1;        // every n-th table with noise
    sim::Time least_won = 2'000;  // bisect for savings down to 1/n of the step time of keep
  };
  // Returns the progress text, with the best result so far.
  using What = std::function<std::string()>;
  // Simulates candidates for the budget. The results are in trials.all().
  void search(const What& what, const Limits& limits, Trials& trials, const Breadth& breadth);
  // Returns the candidates of other systems (field_spans.h). They offload nothing.
  std::vector<Candidate> of_field(Policy policy);
  // Hill climbing from the fastest plans that fit (span_climb.cpp).
  void climb(const What& what, const Limits& limits, Trials& trials);
  // Best-first search from all plans, if nothing fits or the program is small (span_walk.cpp).
  void walk(const What& what, const Limits& limits, Trials& trials);

 private:
  // A combination: a table, and a selection of tensors to offload.
  struct Way {
    std::size_t table = 0;    // number in SpanTables
    std::int64_t share = 0;   // bytes to offload, in percent of what the link can copy in forward
    std::int64_t window = 0;  // in multiples of the largest storage that moves
    PartsInTime in_time = {};
    bool nested = false;                     // use the table of nested spans instead of `table`
    std::map<std::int32_t, Cost> seen = {};  // simulated costs of all budgets, by slots
  };
  // A bisection over slots, between `fits` and `fails`. Slots from `fails` on do not fit. `fits`
  // slots fit, or they are too slow to be useful; at first it is below the fewest slots.
  struct Bisection {
    Way* way;
    bool runs = false;  // a candidate that runs at the budget counts as fitting
    std::int32_t fits = 0;
    std::int32_t fails = 0;
    std::int32_t near = 0;        // the last slots tried
    std::int64_t near_bytes = 0;  // what they need: measured or estimated
    int probes = 0;
    sim::Time least_won = Breadth().least_won;
    sim::Time seen_ns = 0;  // the longest step that did not fit
    sim::Time over_ns = 0;  // time of the last step beyond the table's prediction
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
  Candidate candidate(const Try& of, const std::shared_ptr<const Spanned>& cut) const;
  static Candidate moving(std::int64_t bytes, std::int64_t window,
                          const std::shared_ptr<const Spanned>& cut);
  Candidate moving_in_time(const Way& way, const std::shared_ptr<const Spanned>& cut) const;
  void add_ways();
  Bisection begin(Way& way, const Limits& limits, bool runs) const;
  std::int32_t guess(const Bisection& each, const Limits& limits) const;
  sim::Time told_ns(std::int32_t level, const Way& way) const;
  std::int32_t too_slow(sim::Time step_ns, std::int32_t most, const Way& way) const;
  void take(const Cost& cost, const Limits& limits, Bisection& each) const;
  // True if the bisection should simulate one more candidate; its slots are then in `near`.
  bool goes_on(Bisection& each, const Limits& limits, const Trials& trials) const;

  // These are predictions of the way's table without noise.
  bool fits(std::int32_t level, const Way& way) const;
  sim::Time ns(std::int32_t level, const Way& way) const;
  // True if the table's prediction, without fragments and with full use of the link, is better than
  // the best plan by a fraction of the step that is worth looking for.
  bool may_win(const Cost& best, const Limits& limits) const;
  void bisect_all(bool noisy, bool runs, const What& what, const Limits& limits, Trials& trials,
                  const Breadth& breadth);
  // Runs the bisections until each has ended.
  void bisect(std::vector<Bisection> ways, const What& what, const Limits& limits, Trials& trials);

  bool is_far(const Limits& limits, const Trials& trials) const;
  void nest(const What& what, const Limits& limits, Trials& trials);
  void scan(const What& what, const Limits& limits, Trials& trials, const Breadth& breadth);

  const Problem& problem_;
  const std::shared_ptr<SpanTables> tables_;
  const SpanChoices& choices_;
  const SpanSteps steps_{choices_};
  const Cost kept_;
  std::vector<sim::Time> ends_;   // the result of kernel_ends
  sim::Time turn_ns_ = 0;         // the time at which backward begins
  std::int64_t link_bytes_ = 0;   // bytes that the link can copy out during the forward
  std::int64_t saved_bytes_ = 0;  // bytes of all storages that may move
  std::vector<Way> ways_, nested_ways_;
  std::size_t searches_ = 0;          // calls of `search` so far
  std::map<const Tried*, Try> made_;  // the combination and slots of each candidate
};

}  // namespace ferry::plan
