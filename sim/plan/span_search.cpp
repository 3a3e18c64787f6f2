#include "sim/plan/span_search.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "formats/spans.h"
#include "sim/plan/field_spans.h"
#include "sim/plan/mix.h"
#include "sim/plan/moves.h"
#include "sim/plan/parallel.h"
#include "sim/plan/span_model.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::array<std::int64_t, 3> kShares = {45, 80, 100};  // in hundredths
constexpr std::array<std::int64_t, 3> kWindows = {4, 10, 1};    // of the largest that moves
// What moves at a pace, in hundredths of the link's: about so much of what the link can carry; and
// of what comes back so many of the largest are early.
constexpr std::array<std::int64_t, 3> kPaces = {125, 160, 250};
constexpr std::array<std::int64_t, 2> kPrefetches = {1, 2};
constexpr std::int64_t kPacedShare = 80;
constexpr std::int32_t kMoreShares = 12;  // below the lowest level
constexpr int kProbes = 12;               // of one way
constexpr std::int32_t kScanned = 12;     // levels, of each table
constexpr std::int64_t kScannedWindow = 1;
constexpr std::array<std::int64_t, 2> kScannedShares = {100, 200};
// Tables with noise: fewer of a program with more operators, whose steps take longer to simulate.
constexpr std::size_t kOperators = 4'000;
constexpr std::size_t kKinds = 2;
constexpr std::size_t kFew = 256;     // operators
constexpr std::size_t kFewest = 160;  // steps are quick to simulate, and more ways are tried
constexpr std::size_t kTablesMost = 24;
constexpr std::size_t kTablesLeast = 1;
// What a bisection has left to win that is not worth another probe: a part of the step.
constexpr sim::Time kLeastWon = 2'000;
// What reserves more than the budget may run at it: so many such parts of it more, until two
// have brought nothing.
constexpr int kMore = 4;
constexpr std::int64_t kMoreParts = 24;
constexpr int kMoreInVain = 2;
constexpr sim::Time kLeastLost = 100;  // the part of the step that is worth looking for
// A walk tries so many sets of spans, times operators, and of what is a step from one not more.
constexpr std::size_t kWalked = 64'000;
constexpr std::size_t kWalkedMost = 1'024;
constexpr std::size_t kStepsMost = 64;
constexpr std::size_t kFewWalked = 48;  // operators: a walk goes on where something fits
constexpr sim::Time kLittle = 1'000;    // the part of its step that is not worth another

}  // namespace

SpanSearch::SpanSearch(const Problem& problem, const KeepTrace& keep, const Cost& kept)
    : problem_(problem), choices_(span_model(problem.whole, keep)), kept_(kept) {
  const std::size_t all = choices_.operators();
  if (all == 0) return;
  const std::vector<Statement>& forward =
      problem.whole.codes[*spanned_code(problem.whole)].statements;
  for (const OperatorRange& range : operator_ranges(problem.whole)) {
    names_.push_back(std::get<Op>(forward[range.op].action).name);
  }
  ends_ = kernel_ends(keep, problem.hardware.launch_ns);
  link_bytes_ = link_bytes(keep, problem.hardware);
  for (const auto& [group, here] :
       staying(problem.survey, keep_all(problem.survey), CoreOptions().bytes_min)) {
    saved_bytes_ += here.bytes;
  }
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    least_slots_.push_back(table(choices_.has_prices() ? kind : 0).least_slots());
  }
  const std::size_t noisy = std::clamp(kOperators / all, kTablesLeast, kTablesMost);
  for (std::size_t number = 0; number < kKinds * (noisy + 1); ++number) {
    if (number % kKinds > 0 && !choices_.has_prices()) continue;
    // Of the larger kind, which takes longer to make, fewer have noise.
    const std::size_t most = all > kFew && choices_.has_prices() ? noisy / 4 + 1 : noisy;
    if (number % kKinds == 0 && number / kKinds > most) continue;
    ways_.push_back({.table = number});
    if (number >= kKinds) {
      ways_.push_back({number, kPacedShare, kPrefetches.front(), kPaces.front()});
      if (all <= kFewest) ways_.push_back({number, kPacedShare, kWindows.front()});
      continue;
    }
    for (const std::int64_t pace : kPaces) {
      for (const std::int64_t window : kPrefetches) {
        ways_.push_back({number, kPacedShare, window, pace});
      }
    }
    for (const std::int64_t share : kShares) {
      for (const std::int64_t window : kWindows) ways_.push_back({number, share, window});
    }
  }
}

// With each noise there are two kinds: of all spans, and of those that keep nothing for its price.
const SpanTable& SpanSearch::table(std::size_t number) {
  const auto known = tables_.find(number);
  if (known != tables_.end()) return known->second;
  const bool priced = number % kKinds == 0;
  return tables_.try_emplace(number, choices_, number / kKinds, priced).first->second;
}

// Of all tables of a kind: noise on the times changes nothing of the memory.
std::int32_t SpanSearch::least_slots(const Way& way) const {
  return way.nested ? nested_->least_slots() : least_slots_[way.table % kKinds];
}
bool SpanSearch::fits(std::int32_t level, const Way& way) const {
  return way.nested ? nested_->fits(level) : tables_.at(0).fits(level);
}
sim::Time SpanSearch::ns(std::int32_t level, const Way& way) const {
  return way.nested ? nested_->ns(level) : tables_.at(0).ns(level);
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
  return named(way.nested ? nested_->spans(slots) : table(way.table).spans(slots));
}

std::vector<PlanSpan> SpanSearch::named(std::vector<PlanSpan> spans) const {
  for (PlanSpan& span : spans) {
    span.first_op = names_[span.first];
    span.last_op = names_[span.last];
    span.inner = named(std::move(span.inner));
  }
  return spans;
}

// A survey is half a simulation.
SpanSearch::Cuts SpanSearch::cuts(const std::vector<std::vector<PlanSpan>>& all) {
  using Known = std::map<std::vector<PlanSpan>, std::shared_ptr<const Outlined>>::iterator;
  std::vector<Known> known, fresh;
  for (const std::vector<PlanSpan>& spans : all) {
    const auto [here, is_new] = known_.try_emplace(spans);
    known.push_back(here);
    if (is_new) fresh.push_back(here);
  }
  in_parallel(fresh.size(), [&](std::size_t i) {
    Survey found = survey(problem_.whole, problem_.hardware, fresh[i]->first);
    fresh[i]->second =
        std::make_shared<const Outlined>(Outlined{{}, std::move(found), fresh[i]->first});
  });
  Cuts found;
  for (const Known& each : known) found.push_back(each->second);
  return found;
}

std::vector<Candidate> SpanSearch::candidates(const std::vector<Try>& tries) {
  std::vector<std::vector<PlanSpan>> all;
  for (const Try& each : tries) all.push_back(spans(each.level, each.way));
  const Cuts found = cuts(all);
  std::vector<Candidate> made;
  for (std::size_t i = 0; i < tries.size(); ++i) made.push_back(candidate(tries[i], found[i]));
  return made;
}

Candidate SpanSearch::candidate(const Try& of, const std::shared_ptr<const Outlined>& cut) const {
  const auto& [level, way] = of;
  if (way.pace > 0) return moving_paced(way, cut);
  return moving(way.share > 0 ? moved_bytes(level, way) : 0, way.window, cut);
}

Candidate SpanSearch::moving(std::int64_t bytes, std::int64_t window,
                             const std::shared_ptr<const Outlined>& cut) {
  Mix mix = keep_all(cut->survey);
  CoreOptions options;
  if (bytes > 0) move_evenly(mix, cut->survey, bytes, window, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.outlined = cut;
  return made;
}

Candidate SpanSearch::moving_paced(const Way& way,
                                   const std::shared_ptr<const Outlined>& cut) const {
  Mix mix = keep_all(cut->survey);
  CoreOptions options;
  move_paced(mix, cut->survey, ends_, problem_.hardware.link, way.pace, way.window, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.outlined = cut;
  return made;
}

std::vector<Candidate> SpanSearch::of_field(Policy policy) {
  std::vector<std::vector<PlanSpan>> all;
  if (choices_.operators() == 0) return {};
  if (policy == Policy::kKnapsack) all = knapsack_spans(choices_, names_);
  if (policy == Policy::kSelective) {
    all.push_back(selective_spans(problem_.whole, choices_, names_));
  }
  for (std::vector<PlanSpan>& spans : all) spans = named(std::move(spans));
  std::vector<Candidate> made;
  for (const auto& cut : cuts(all)) made.push_back(moving(0, 0, cut));
  return made;
}

// What was seen for other budgets narrows it down.
SpanSearch::Bisection SpanSearch::begin(Way& way, const Limits& aim, bool or_runs) const {
  Bisection each{.way = &way,
                 .aim = aim,
                 .or_runs = or_runs,
                 .fits = (way.share > 0 && way.pace == 0 ? lowest(way) : least_slots(way)) - 1,
                 .fails = choices_.slots() + 1,
                 .near = choices_.slots(),
                 .near_bytes = aim.keep_bytes - moved_bytes(choices_.slots(), way)};
  for (const auto& [level, cost] : way.seen) {
    if (is_answer(cost, aim)) {
      each.fits = std::max(each.fits, level);
    } else {
      each.fails = std::min(each.fails, level);
      each.near = level;
      each.near_bytes = cost.device_reserved_bytes;
      break;
    }
  }
  return each;
}

// As many slots fewer as bytes are too many; every third time the middle, so that a wrong guess
// costs little.
std::int32_t SpanSearch::guess(const Bisection& each) const {
  if (each.probes % 3 == 2) return (each.fits + each.fails) / 2;
  const std::int64_t slots = (each.aim.budget_bytes - each.near_bytes) / choices_.slot_bytes();
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
  const sim::Time little = kept_.step_ns / kLeastWon;
  if (best && told + little >= best->step_ns) return false;
  if (each.fits >= least && told_ns(each.fits, way) - told <= little) return false;
  if (best && names_.size() > kOperators) {
    // A lower level has more to run again, though now and then less to wait for.
    if (std::max(told + kept_.step_ns / kLittle, each.seen_ns) >= best->step_ns) return false;
  }
  each.near = guess(each);
  ++each.probes;
  return true;
}

// What the table says of so many slots, at least those of the least that fits.
sim::Time SpanSearch::told_ns(std::int32_t level, const Way& way) const {
  return kept_.step_ns + ns(std::max(level, least_slots({.nested = way.nested})), way);
}

// A level fits that reserves no more than is aimed at. Or it runs at the budget by giving back what
// it would reserve beyond, and that takes no longer than to have so much less.
void SpanSearch::take(const Tried& tried, const Limits& limits, Bisection& each) const {
  const Cost& cost = tried.cost;
  each.way->seen[each.near] = cost;
  each.near_bytes = cost.device_reserved_bytes;
  if (is_answer(cost, each.aim)) {
    each.fits = each.near;
  } else if (each.or_runs && runs_cheaply(tried, limits, each)) {
    each.fits = each.near;
    // The least that it runs at is not known: at least what it allocates, at most the budget.
    each.near_bytes = (cost.device_peak_bytes + limits.budget_bytes) / 2;
  } else {
    each.fails = each.near;
    each.seen_ns = std::max(each.seen_ns, cost.step_ns);
  }
}

bool SpanSearch::runs_cheaply(const Tried& tried, const Limits& limits,
                              const Bisection& each) const {
  const Cost within = tried.within(limits);
  if (!is_answer(within, limits)) return false;
  const Way& way = *each.way;
  const std::int64_t beyond = tried.cost.device_reserved_bytes - limits.budget_bytes;
  const std::int64_t less = each.near - beyond / choices_.slot_bytes();
  if (less < least_slots({.nested = way.nested})) return true;
  const sim::Time runs_again_ns =
      told_ns(static_cast<std::int32_t>(less), way) - told_ns(each.near, way);
  return within.step_ns - tried.cost.step_ns <= runs_again_ns;
}

void SpanSearch::search(const What& what, const Limits& limits, Trials& trials, std::size_t every) {
  const std::size_t turn = searches_++ % every;
  const auto bisect_all = [&](const Limits& aim, bool or_runs) {
    std::vector<Bisection> open;
    for (Way& way : ways_) {
      const std::size_t noise = way.table / kKinds;
      if (noise == 0 || noise % every == turn) open.push_back(begin(way, aim, or_runs));
    }
    bisect(std::move(open), what, limits, trials);
  };
  bisect_all(limits, true);
  const bool capacities = every == 1 && problem_.judged == Judged::kReserved;
  Limits aim = limits;
  for (int more = 0, vain = 0; capacities && more < kMore && vain < kMoreInVain; ++more) {
    const std::optional<Cost> before = trials.fitting(limits);
    if (!before || !may_win(*before, limits)) break;
    aim.budget_bytes += limits.budget_bytes / kMoreParts;
    bisect_all(aim, false);
    if (trials.fitting(limits)->step_ns >= before->step_ns) ++vain;
  }
  nest(what, limits, trials);
  if (is_far(limits, trials)) scan(what, limits, trials, every);
}

bool SpanSearch::may_win(const Cost& best, const Limits& limits) const {
  if (choices_.operators() == 0) return false;
  const sim::Time told = told_ns(choices_.slots_of(limits.budget_bytes + link_bytes_), {});
  return best.step_ns - told > kept_.step_ns / kLeastLost;
}

void SpanSearch::bisect(std::vector<Bisection> open, const What& what, const Limits& limits,
                        Trials& trials) {
  for (;;) {
    std::vector<Try> round;
    std::vector<Bisection*> asked;
    for (Bisection& each : open) {
      if (!goes_on(each, limits, trials)) continue;
      round.push_back({each.near, *each.way});
      asked.push_back(&each);
    }
    if (round.empty()) break;
    const std::vector<const Tried*> tried = trials.within(what(), candidates(round), limits);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      made_.try_emplace(tried[i], round[i]);
      take(*tried[i], limits, *asked[i]);
    }
  }
}

// Where one level has room enough, a second one gains nothing.
void SpanSearch::nest(const What& what, const Limits& limits, Trials& trials) {
  if (choices_.operators() == 0) return;
  const std::int32_t slots = choices_.slots_of(limits.budget_bytes);
  if (slots > least_slots({}) / 2 * 3 && !is_far(limits, trials)) return;
  if (!nested_) {
    nested_.emplace(choices_);
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

// True if nothing was found, or what takes a twentieth longer than twice the table's time for the
// budget.
bool SpanSearch::is_far(const Limits& limits, const Trials& trials) const {
  if (choices_.operators() == 0) return false;
  const std::int32_t slots = std::max(choices_.slots_of(limits.budget_bytes), least_slots({}));
  if (!tables_.at(0).fits(slots)) return false;
  const std::optional<Cost> best = trials.fitting(limits);
  const sim::Time near = 2 * tables_.at(0).ns(slots) + kept_.step_ns / 20;
  return !best || best->step_ns - kept_.step_ns > near;
}

// Near the least memory fragments decide, and a lower level may need more.
void SpanSearch::scan(const What& what, const Limits& limits, Trials& trials, std::size_t every) {
  const std::int32_t all = choices_.slots_of(limits.budget_bytes);
  std::vector<Try> tries;
  for (const auto& [number, table] : tables_) {
    if (number / kKinds % every != searches_ % every) continue;
    const std::int32_t least = least_slots({.table = number});
    const std::int32_t most = std::max(all, least);
    for (std::int32_t level = least; level <= most; level += (most - least) / kScanned + 1) {
      for (const std::int64_t share : kScannedShares) {
        tries.push_back({level, {number, share, kScannedWindow}});
      }
    }
  }
  trials.of(what(), candidates(tries));
}

namespace {

// What a walk has come to: sets of spans, of which nothing moves, the nearest first. Of equals the
// one that was met first.
class Nearest {
 public:
  using Spans = std::vector<PlanSpan>;

  explicit Nearest(const Limits& limits) : limits_(limits) {}

  bool empty() const { return open_.empty(); }
  bool knows(const Spans& spans) const { return met_.contains(spans); }
  void add(Spans spans, const Cost& cost) {
    if (met_.insert(spans).second) open_.emplace(std::pair(rank(cost), met_.size()), spans);
  }
  Spans take() {
    const Spans spans = std::move(open_.begin()->second);
    open_.erase(open_.begin());
    return spans;
  }

 private:
  using Rank = std::tuple<bool, bool, std::int64_t, std::int64_t, sim::Time>;
  Rank rank(const Cost& cost) const {
    const bool in = fits(cost, limits_);
    return {cost.fails, !in, in ? cost.step_ns : cost.device_reserved_bytes, cost.device_peak_bytes,
            cost.step_ns};
  }

  const Limits limits_;
  std::map<std::pair<Rank, std::size_t>, Spans> open_;
  std::set<Spans> met_;
};

}  // namespace

void SpanSearch::walk(const What& what, const Limits& limits, Trials& trials) {
  const std::size_t all = choices_.operators();
  if (all == 0 || (all > kFewWalked && trials.fitting(limits))) return;
  Nearest nearest(limits);
  for (const Tried& each : trials.all()) {
    const Candidate& candidate = each.candidate;
    if (!each.done || candidate.options || candidate.trl) continue;
    const Outlined* const own = candidate.outlined.get();
    const bool recomputes = std::ranges::count(candidate.mix.recompute, true) > 0;
    if (own && std::ranges::any_of(own->spans, nests)) continue;
    if (!recomputes) nearest.add(own ? own->spans : std::vector<PlanSpan>(), each.cost);
  }
  std::mt19937_64 draws(all);
  // To say what was found so far all trials are looked at, and a walk tries few at a time.
  std::string words = what();
  std::size_t told = 0, tried = 0;
  for (std::size_t left = std::min(kWalked / all + 1, kWalkedMost); left > 0 && !nearest.empty();) {
    std::vector<std::vector<PlanSpan>> next = steps_.from(nearest.take());
    for (std::vector<PlanSpan>& spans : next) spans = named(std::move(spans));
    std::erase_if(next, [&](const auto& spans) { return nearest.knows(spans); });
    while (next.size() > std::min(kStepsMost, left)) {
      std::swap(next[draws() % next.size()], next.back());
      next.pop_back();
    }
    left -= std::max<std::size_t>(next.size(), 1);  // to look around costs something, too
    const Cuts found = cuts(next);
    std::vector<Candidate> tries;
    for (const auto& cut : found) tries.push_back(moving(0, 0, cut));
    const std::vector<Cost> costs = trials.of(words, tries);
    for (std::size_t i = 0; i < costs.size(); ++i) nearest.add(std::move(next[i]), costs[i]);
    tried += costs.size();
    if (tried - told < kStepsMost) continue;
    words = what();
    told = tried;
  }
}

}  // namespace ferry::plan
