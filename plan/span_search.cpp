#include "plan/span_search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "plan/field_spans.h"
#include "plan/mix.h"
#include "plan/moves.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Even offload for nested spans: bytes, in percent of what the link can copy during the forward,
// and windows, in multiples of the largest storage that moves. Larger: more offload; a larger
// window costs memory.
constexpr std::array<std::int64_t, 2> kShares = {45, 100};
constexpr std::array<std::int64_t, 2> kWindows = {4, 1};
constexpr std::int64_t kEvenShare = 80;  // the same percentage, with tables that have noise
// Offload in time, as {pace, ahead, until, room}. A slow pace leaves fewer fragments; offloading as
// much as possible as early as possible frees the most. kAtOncePace (percent of the link's rate)
// sets no pace.
constexpr std::int64_t kAtOncePace = 1'000'000'000;
constexpr std::array<PartsInTime, 7> kInTime = {{{kAtOncePace, 2},
                                                 {kAtOncePace, 3},
                                                 {kAtOncePace, 2, 70},
                                                 {140, 5},
                                                 {100, 5},
                                                 {100, 8},
                                                 {50, 4}}};
// The same with prefetch by bytes (`room`), for budgets at which few tensors are kept.
constexpr std::array<PartsInTime, 3> kInRoom = {
    {{160, 1, 100, 1}, {125, 1, 100, 2}, {250, 1, 100, 2}}};
// The same for tables with noise.
constexpr std::array<PartsInTime, 3> kNoisyInTime = {{{kAtOncePace, 2}, {100, 5}, {50, 4}}};
// Estimate of the bytes that move in time, in percent of what the link can copy during the forward.
// Only the first guess of a bisection uses it: larger, and it begins with more slots.
constexpr std::int64_t kShareInTime = 80;
// Below the fewest slots of a table, the bytes that move evenly rise to all in so many steps.
// Larger: finer steps.
constexpr std::int32_t kMoreShares = 12;
// Bound on the simulations of one bisection. Larger: more exact, more time.
constexpr int kProbes = 12;
// Bisections that run at the same time. Larger: better use of many processors, but fewer results
// are known when the next bisection begins.
constexpr std::size_t kAtOnce = 8;
// After a candidate that needs more than the budget, the next guess is lower: by 1/kBeyondParts of
// what it reserves beyond the budget or, if its run failed, by 1/kFailedParts of the distance to
// the slots that fit. Larger: smaller steps down.
constexpr std::int64_t kBeyondParts = 4;
constexpr std::int32_t kFailedParts = 3;
// At other slots a step is expected to exceed the table's time as much as at the last slots tried,
// less 1/kOverParts. Larger: bisections end sooner.
constexpr sim::Time kOverParts = 4;
// Nested spans are tried for budgets up to 1/kNested above the fewest slots of spans that are not
// nested. Larger: less often.
constexpr std::int32_t kNested = 16;
constexpr std::size_t kKinds = SpanTables::kKinds;
// `scan` simulates kScannedOperators / (number of operators) slots of each table, from
// kScannedLeast to kScanned. Larger: more plans near the least memory, more time.
constexpr std::size_t kScanned = 12;
constexpr std::size_t kScannedLeast = 2;
constexpr std::size_t kScannedOperators = 48'000;
constexpr std::int64_t kScannedWindow = 1;                          // as kWindows
constexpr std::array<std::int64_t, 2> kScannedShares = {100, 200};  // as kShares
// The number of noises is kNoisy / (number of operators), from kTablesLeast to kTablesMost, because
// the steps of large programs take long to simulate. Larger: more plans, more time.
constexpr std::size_t kNoisy = 2'400;
// Numbers of operators. Above kOperators a bisection ends sooner; above kFew a quarter of the
// tables with noise has all spans; up to kFewest, tables with noise have more combinations. Larger
// kOperators, kFew and kFewest: more simulations.
constexpr std::size_t kOperators = 4'000;
constexpr std::size_t kFew = 256;
constexpr std::size_t kFewest = 160;
constexpr std::size_t kTablesMost = 24;
constexpr std::size_t kTablesLeast = 1;
// Fractions of the step time of keep. A climb needs a possible saving of 1/kLeastLost; above
// kOperators a bisection needs one of 1/kLittle. Larger: smaller savings are looked for.
constexpr sim::Time kLeastLost = 100;
constexpr sim::Time kLittle = 1'000;

}  // namespace

SpanSearch::SpanSearch(const Problem& problem, std::shared_ptr<SpanTables> tables,
                       const KeepTrace& keep, const Cost& kept)
    : problem_(problem), tables_(std::move(tables)), choices_(tables_->choices()), kept_(kept) {
  if (choices_.operators() == 0) return;
  ends_ = kernel_ends(keep, problem.hardware.launch_ns);
  const auto before = std::ranges::count(keep.kernels, true, &TracedKernel::forward);
  turn_ns_ = ends_[static_cast<std::size_t>(before)];
  link_bytes_ = link_bytes(keep, problem.hardware);
  for (const auto& [group, here] :
       staying(problem.survey, keep_all(problem.survey), CoreOptions().min_bytes)) {
    saved_bytes_ += here.bytes;
  }
  add_ways();
}

void SpanSearch::add_ways() {
  const std::size_t all = choices_.operators();
  ways_.push_back({});
  for (const PartsInTime& how : kInTime) {
    ways_.push_back({.share = kShareInTime, .in_time = how});
  }
  for (const PartsInTime& how : kInRoom) {
    ways_.push_back({.share = kShareInTime, .in_time = how});
  }
  if (choices_.has_prices()) ways_.push_back({.table = 1});
  const std::size_t noises = std::clamp(kNoisy / all, kTablesLeast, kTablesMost);
  for (std::size_t number = kKinds; number < kKinds * (noises + 1); ++number) {
    if (number % kKinds > 0 && !choices_.has_prices()) continue;
    // Tables with all spans take longer to make, so fewer of them have noise.
    const std::size_t most = all > kFew && choices_.has_prices() ? noises / 4 + 1 : noises;
    if (number % kKinds == 0 && number / kKinds > most) continue;
    ways_.push_back({.table = number});
    const PartsInTime& paced = kNoisyInTime[1 + number % (kNoisyInTime.size() - 1)];
    for (const PartsInTime& how : {kNoisyInTime.front(), paced}) {
      ways_.push_back({.table = number, .share = kShareInTime, .in_time = how});
    }
    if (all > kFewest) continue;
    ways_.push_back({number, kEvenShare, kWindows.front()});
    ways_.push_back(
        {.table = number, .share = kShareInTime, .in_time = kInRoom[number % kInRoom.size()]});
  }
}

std::int32_t SpanSearch::least_slots(const Way& way) const {
  return way.nested ? tables_->nested().least_slots() : tables_->least_slots(way.table);
}
bool SpanSearch::fits(std::int32_t level, const Way& way) const {
  return way.nested ? tables_->nested().fits(level) : tables_->table(0).fits(level);
}
sim::Time SpanSearch::ns(std::int32_t level, const Way& way) const {
  return way.nested ? tables_->nested().ns(level) : tables_->table(0).ns(level);
}
std::int32_t SpanSearch::lowest(const Way& way) const { return least_slots(way) - kMoreShares; }

std::int64_t SpanSearch::moved_bytes(std::int32_t level, const Way& way) const {
  const auto moved = static_cast<std::int64_t>(Wide{link_bytes_} * way.share / 100);
  if (way.share == 0 || level >= least_slots(way)) return moved;
  const std::int64_t more = least_slots(way) - level;
  const std::int64_t rest = std::max<std::int64_t>(saved_bytes_ - moved, 0);
  return moved + rest * more / kMoreShares;
}

std::vector<PlanSpan> SpanSearch::spans(std::int32_t level, const Way& way) {
  const std::int32_t slots = std::max(level, least_slots(way));
  return tables_->named(way.nested ? tables_->nested().spans(slots)
                                   : tables_->table(way.table).spans(slots));
}

std::vector<Candidate> SpanSearch::candidates(const std::vector<Try>& tries) {
  std::set<std::size_t> numbers;
  for (const Try& each : tries) {
    if (!each.way.nested) numbers.insert(each.way.table);
  }
  tables_->make(numbers);
  std::vector<std::vector<PlanSpan>> all;
  for (const Try& each : tries) all.push_back(spans(each.level, each.way));
  const SpanTables::Cuts found = tables_->cuts(all);
  std::vector<Candidate> made;
  for (std::size_t i = 0; i < tries.size(); ++i) made.push_back(candidate(tries[i], found[i]));
  return made;
}

Candidate SpanSearch::candidate(const Try& of, const std::shared_ptr<const Spanned>& cut) const {
  const auto& [level, way] = of;
  if (way.in_time.ahead > 0) return moving_in_time(way, cut);
  return moving(way.share > 0 ? moved_bytes(level, way) : 0, way.window, cut);
}

Candidate SpanSearch::moving(std::int64_t bytes, std::int64_t window,
                             const std::shared_ptr<const Spanned>& cut) {
  Mix mix = keep_all(cut->survey);
  CoreOptions options;
  if (bytes > 0) move_evenly(mix, cut->survey, bytes, window, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.spanned = cut;
  return made;
}

Candidate SpanSearch::moving_in_time(const Way& way,
                                     const std::shared_ptr<const Spanned>& cut) const {
  Mix mix = keep_all(cut->survey);
  CoreOptions options;
  const auto& [pace, ahead, until, room] = way.in_time;
  const InTime how{pace, until, cut->survey.packs.size() / ahead + 1, room};
  move_in_time(mix, cut->survey, ends_, turn_ns_, problem_.hardware.link, how, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.spanned = cut;
  return made;
}

std::vector<Candidate> SpanSearch::of_field(Policy policy) {
  std::vector<std::vector<PlanSpan>> all;
  if (choices_.operators() == 0) return {};
  if (policy == Policy::kKnapsack) all = knapsack_spans(choices_, tables_->names());
  if (policy == Policy::kSelective) {
    all.push_back(selective_spans(problem_.whole, choices_, tables_->names()));
  }
  for (std::vector<PlanSpan>& spans : all) spans = tables_->named(std::move(spans));
  std::vector<Candidate> made;
  for (const auto& cut : tables_->cuts(all)) made.push_back(moving(0, 0, cut));
  return made;
}

// Begins a bisection. Costs that were simulated for other budgets narrow it down.
SpanSearch::Bisection SpanSearch::begin(Way& way, const Limits& limits, bool runs) const {
  Bisection each{
      .way = &way,
      .runs = runs,
      .fits = (way.share > 0 && way.in_time.ahead == 0 ? lowest(way) : least_slots(way)) - 1,
      .fails = choices_.slots() + 1,
      .near = choices_.slots(),
      .near_bytes = limits.keep_bytes - moved_bytes(choices_.slots(), way)};
  for (const auto& [level, cost] : way.seen) {
    if (is_answer(cost, limits)) {
      each.fits = std::max(each.fits, level);
      each.near = level;
      each.near_bytes = cost.device_reserved_bytes;
      continue;
    }
    each.near = level;
    each.near_bytes = runs ? cost.device_peak_bytes : cost.device_reserved_bytes;
    if (!runs) each.fails = std::min(each.fails, level);
    break;
  }
  return each;
}

// Returns the next slots to try: the last ones minus the bytes over the budget. Every third guess
// is the middle, so that wrong estimates cost little.
std::int32_t SpanSearch::guess(const Bisection& each, const Limits& limits) const {
  if (each.probes % 3 == 2) return (each.fits + each.fails) / 2;
  const std::int64_t slots = (limits.budget_bytes - each.near_bytes) / choices_.slot_bytes();
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(each.near + slots, each.fits + 1, each.fails - 1));
}

bool SpanSearch::goes_on(Bisection& each, const Limits& limits, const Trials& trials) const {
  if (each.fails - each.fits <= 1 || each.probes >= kProbes) return false;
  const Way& way = *each.way;
  const std::int32_t least = least_slots({.nested = way.nested});
  const std::int32_t most = std::max(each.fails - 1, least);
  if (!fits(most, way)) return false;
  const std::optional<Cost> best = trials.fitting(limits);
  const sim::Time told = told_ns(most, way);
  const sim::Time little = kept_.step_ns / each.least_won;
  if (best) {
    // Offload and freeing the cache take time that the table does not predict. At other slots this
    // extra time is about the same.
    const sim::Time more = little + each.over_ns / kOverParts * (kOverParts - 1);
    if (told + more >= best->step_ns) return false;
    each.fits = std::max(each.fits, too_slow(best->step_ns - more, most, way));
    if (each.fails - each.fits <= 1) return false;
  }
  if (each.fits >= least && told_ns(each.fits, way) - told <= little) return false;
  if (best && choices_.operators() > kOperators) {
    // Fewer slots mean more recomputes, although sometimes fewer waits.
    if (std::max(told + kept_.step_ns / kLittle, each.seen_ns) >= best->step_ns) return false;
  }
  each.near = guess(each, limits);
  ++each.probes;
  return true;
}

// Returns the most slots, below `most`, at which the table predicts at least this step time.
std::int32_t SpanSearch::too_slow(sim::Time step_ns, std::int32_t most, const Way& way) const {
  std::int32_t slow = least_slots({.nested = way.nested}) - 1;
  if (told_ns(slow, way) < step_ns) return slow;
  while (most - slow > 1) {
    const std::int32_t middle = slow + (most - slow) / 2;
    (told_ns(middle, way) < step_ns ? most : slow) = middle;
  }
  return slow;
}

// Returns the step time that the table predicts; for too few slots, that of the fewest that fit.
sim::Time SpanSearch::told_ns(std::int32_t level, const Way& way) const {
  return kept_.step_ns + ns(std::max(level, least_slots({.nested = way.nested})), way);
}

// Records the result of the last slots tried, and estimates the bytes that they need for the next
// guess. A candidate that runs at the budget by freeing cache needs at least what it allocates;
// more is not known. A candidate that fails at the budget has no figures at all.
void SpanSearch::take(const Cost& cost, const Limits& limits, Bisection& each) const {
  // The first step of a training may free cache. If every step does, that takes longer than more
  // recomputes, so these slots count as failed.
  const bool always_gives_back = each.runs && cost.retries > 0 && problem_.is_training();
  if (cost.fails || always_gives_back) {
    const std::int64_t levels = (each.near - each.fits) / kFailedParts;
    each.near_bytes = limits.budget_bytes + levels * choices_.slot_bytes() + 1;
    each.fails = each.near;
    return;
  }
  each.way->seen[each.near] = cost;
  each.near_bytes = each.runs ? cost.device_peak_bytes : cost.device_reserved_bytes;
  each.over_ns = cost.step_ns - told_ns(each.near, *each.way);
  if (is_answer(cost, limits)) {
    each.fits = each.near;
    return;
  }
  each.fails = each.near;
  each.seen_ns = std::max(each.seen_ns, cost.step_ns);
  const std::int64_t beyond = cost.device_reserved_bytes - limits.budget_bytes;
  if (each.near_bytes <= limits.budget_bytes) {
    each.near_bytes = limits.budget_bytes + beyond / kBeyondParts + 1;
  }
}

void SpanSearch::search(const What& what, const Limits& limits, Trials& trials,
                        const Breadth& breadth) {
  if (choices_.operators() == 0) return;
  ++searches_;
  const bool reserved = problem_.judged == Judged::kReserved;
  for (const bool noisy : {false, true}) {
    for (const bool runs : {false, true}) {
      if (runs ? !reserved : reserved && problem_.is_training()) continue;
      bisect_all(noisy, runs, what, limits, trials, breadth);
    }
  }
  nest(what, limits, trials);
  if (is_far(limits, trials)) scan(what, limits, trials, breadth);
}

void SpanSearch::bisect_all(bool noisy, bool runs, const What& what, const Limits& limits,
                            Trials& trials, const Breadth& breadth) {
  std::vector<Bisection> open;
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    const std::size_t noise = ways_[i].table / kKinds;
    if ((noise > 0) != noisy) continue;
    const std::size_t of = noisy ? breadth.noise : breadth.ways;
    if (i > 0 && (noisy ? noise : i) % of != searches_ % of) continue;
    open.push_back(begin(ways_[i], limits, runs));
    open.back().least_won = breadth.least_won;
  }
  bisect(std::move(open), what, limits, trials);
}

bool SpanSearch::may_win(const Cost& best, const Limits& limits) const {
  if (choices_.operators() == 0) return false;
  const sim::Time told = told_ns(choices_.slots_of(limits.budget_bytes + link_bytes_), {});
  return best.step_ns - told > kept_.step_ns / kLeastLost;
}

// Some bisections run at a time, so that plans found by the first rule out slots of the next.
void SpanSearch::bisect(std::vector<Bisection> ways, const What& what, const Limits& limits,
                        Trials& trials) {
  std::vector<Bisection*> open;
  for (std::size_t next = 0;;) {
    std::erase_if(open, [&](Bisection* each) { return !goes_on(*each, limits, trials); });
    for (; open.size() < kAtOnce && next < ways.size(); ++next) {
      if (goes_on(ways[next], limits, trials)) open.push_back(&ways[next]);
    }
    if (open.empty()) break;
    std::vector<Try> round;
    for (const Bisection* each : open) round.push_back({each->near, *each->way});
    const std::vector<Candidate> all = candidates(round);
    const std::vector<Trials::Found> found =
        open.front()->runs ? trials.at_budget(what(), all, limits) : trials.unlimited(what(), all);
    for (std::size_t i = 0; i < open.size(); ++i) {
      made_.try_emplace(found[i].tried, round[i]);
      take(found[i].cost, limits, *open[i]);
    }
  }
}

// Bisects the table of nested spans. With more memory, nesting gains nothing.
void SpanSearch::nest(const What& what, const Limits& limits, Trials& trials) {
  const std::int32_t slots = choices_.slots_of(limits.budget_bytes);
  if (slots > least_slots({}) / kNested * (kNested + 1) && !is_far(limits, trials)) return;
  if (nested_ways_.empty()) {
    nested_ways_.push_back({.nested = true});
    for (const std::int64_t share : kShares) {
      for (const std::int64_t window : kWindows) {
        nested_ways_.push_back({.share = share, .window = window, .nested = true});
      }
    }
  }
  std::vector<Bisection> open;
  for (Way& way : nested_ways_) open.push_back(begin(way, limits, true));
  bisect(std::move(open), what, limits, trials);
}

// True if nothing was found, or if the best plan's extra time over keep is more than twice the
// recompute time that the table predicts for the budget, plus a twentieth of the step.
bool SpanSearch::is_far(const Limits& limits, const Trials& trials) const {
  const std::int32_t slots = std::max(choices_.slots_of(limits.budget_bytes), least_slots({}));
  if (!tables_->table(0).fits(slots)) return false;
  const std::optional<Cost> best = trials.fitting(limits);
  const sim::Time near = 2 * tables_->table(0).ns(slots) + kept_.step_ns / 20;
  return !best || best->step_ns - kept_.step_ns > near;
}

// Simulates evenly spaced slots of every table. Near the least memory fragments decide, and a plan
// with fewer slots may need more memory.
void SpanSearch::scan(const What& what, const Limits& limits, Trials& trials,
                      const Breadth& breadth) {
  const std::int32_t all = choices_.slots_of(limits.budget_bytes);
  const auto levels = static_cast<std::int32_t>(
      std::clamp(kScannedOperators / choices_.operators(), kScannedLeast, kScanned));
  std::vector<Try> tries;
  std::set<std::size_t> numbers;
  for (const Way& way : ways_) numbers.insert(way.table);
  for (const std::size_t number : numbers) {
    if (number / kKinds % breadth.noise != searches_ % breadth.noise) continue;
    const std::int32_t least = least_slots({.table = number});
    const std::int32_t most = std::max(all, least);
    for (std::int32_t level = least; level <= most; level += (most - least) / levels + 1) {
      for (const std::int64_t share : kScannedShares) {
        tries.push_back({level, {number, share, kScannedWindow}});
      }
    }
  }
  trials.of(what(), candidates(tries));
}

}  // namespace ferry::plan
