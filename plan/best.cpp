#include "plan/best.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "formats/modules.h"
#include "plan/moves.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::array<std::int64_t, 3> kShares = {45, 80, 100};  // in hundredths
constexpr std::array<std::int64_t, 2> kWindows = {4, 10};       // of the largest that moves
constexpr std::size_t kStairs = 64;
constexpr std::size_t kPacks = 128'000;  // of all steps with noise, or there are fewer stairs
constexpr std::uint64_t kNoise = 15;     // in hundredths of a span's time, either way
constexpr std::int64_t kNear = 150;      // of the best overhead, in hundredths
constexpr std::size_t kMoreShares = 16;
constexpr sim::Time kLittle = 100;     // the part of a step that giving back may take
constexpr std::size_t kLastSteps = 8;  // of the stairs, where nothing fits

// The packs of each segment that a recompute makes again, if it is recomputed: its first ones.
using Cuts = std::vector<std::optional<std::size_t>>;

// The storages that stay on the device in spite of recomputes: those that a pack saves which no
// recompute makes, or that a recomputed segment is handed.
std::set<std::uint64_t> held_groups(const Survey& survey, const Cuts& cuts) {
  std::set<std::uint64_t> held;
  std::size_t pack = 0;
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    if (!cuts[s]) continue;
    const SurveyedSegment& segment = survey.segments[s];
    for (const PackedTensor& input : segment.inputs) held.insert(input.group);
    for (; pack < segment.first; ++pack) held.insert(survey.packs[pack].group);
    pack = std::max(pack, segment.first + *cuts[s]);
  }
  for (; pack < survey.packs.size(); ++pack) held.insert(survey.packs[pack].group);
  return held;
}

// What stays is kept: so a recompute ends as early as it can.
Mix recompute_segments(const Survey& survey, const Cuts& cuts) {
  Mix mix = keep_all(survey);
  const std::set<std::uint64_t> held = held_groups(survey, cuts);
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    if (!cuts[s]) continue;
    const SurveyedSegment& segment = survey.segments[s];
    mix.recompute[s] = true;
    for (std::size_t p = segment.first; p < segment.first + *cuts[s]; ++p) {
      const PackedTensor& pack = survey.packs[p];
      const bool made_again = !pack.global && !held.contains(pack.group);
      if (made_again || segment.whole) mix.packs[p] = PlanChoice::kRecompute;
    }
  }
  return mix;
}

// Where the survey does not see the saves that the forward's statements show, the whole module is
// recomputed.
Cuts cuts_of(const std::vector<Span>& spans, const Outlined& cut) {
  Cuts cuts(cut.survey.segments.size());
  for (const Span& span : spans) {
    const auto name = std::find(cut.modules.begin(), cut.modules.end(), span.module);
    const auto s = static_cast<std::size_t>(name - cut.modules.begin());
    if (s >= cuts.size()) continue;
    const SurveyedSegment& segment = cut.survey.segments[s];
    const std::size_t all = segment.end - segment.first;
    cuts[s] = span.all_saves == all && !segment.whole ? span.saves : all;
  }
  return cuts;
}

// The same for the same seed; 0: no noise.
std::vector<Span> noisy(std::vector<Span> spans, std::uint64_t seed) {
  std::mt19937_64 draws(seed);
  for (Span& span : spans) {
    const std::uint64_t percent = 100 - kNoise + draws() % (2 * kNoise + 1);
    if (seed != 0) span.ns = static_cast<std::int64_t>(Wide{span.ns} * percent / 100);
  }
  return spans;
}

// True if it runs at the budget, and to give back what it would reserve beyond that takes little.
bool fits_soon(const Cost& within, const Cost& unlimited, const Limits& limits) {
  return is_answer(within, limits) &&
         within.step_ns - unlimited.step_ns <= within.step_ns / kLittle;
}

}  // namespace

BestSearch::BestSearch(const Problem& problem, const KeepTrace& keep, sim::Time keep_ns)
    : problem_(problem), keep_ns_(keep_ns) {
  if (!problem.modules) return;
  spans_ = module_spans(problem.whole, problem.hardware);
  if (spans_.empty()) return;
  if (marks_calls(problem.whole)) {
    calls_ = segment_modules(problem.whole);
  } else {
    std::vector<std::string> modules;
    for (const Span& span : spans_) {
      if (modules.empty() || modules.back() != span.module) modules.push_back(span.module);
    }
    segments_.emplace(problem.whole, problem.hardware, modules);
  }
  link_bytes_ = link_bytes(keep, problem.hardware);
  const std::int64_t least_moved = CoreOptions().min_bytes;
  for (const auto& [group, here] : staying(problem.survey, keep_all(problem.survey), least_moved)) {
    saved_bytes_ += here.bytes;
  }
  forward_bytes_ = saved_bytes(problem.whole, problem.hardware);
  for (const std::int64_t share : kShares) {
    for (const std::int64_t window : kWindows) ways_.push_back({0, share, window});
  }
  const std::size_t most = kPacks / std::max<std::size_t>(keep.packs.size(), 1) + 1;
  for (std::size_t i = 0; i < std::min(kStairs, most); ++i) ways_.push_back({.stairs = i});
}

const Stairs& BestSearch::stairs(std::size_t number) {
  while (stairs_.size() <= number) {
    stairs_.emplace_back(noisy(spans_, stairs_.size()), forward_bytes_);
  }
  return stairs_[number];
}

std::shared_ptr<const Outlined> BestSearch::outlined(const std::vector<Span>& spans) {
  std::vector<std::string> names = calls_;
  if (names.empty()) {
    for (const Span& span : spans) names.push_back(span.module);
  }
  std::shared_ptr<const Outlined>& known = outlined_[names];
  if (known) return known;
  Survey surveyed = calls_.empty() ? segments_->survey_of(names) : problem_.survey;
  known = std::make_shared<const Outlined>(Outlined{std::move(names), std::move(surveyed)});
  return known;
}

std::int64_t BestSearch::bytes_of(std::int64_t share) const {
  return static_cast<std::int64_t>(Wide{link_bytes_} * share / 100);
}

// Below the last step of the stairs, so many more move more and more.
std::size_t BestSearch::rungs(const Way& way) {
  return stairs(way.stairs).steps() + (way.share > 0 ? kMoreShares : 0);
}

std::int64_t BestSearch::share_at(std::size_t rung, const Way& way) {
  const std::size_t steps = stairs(way.stairs).steps();
  if (way.share == 0 || rung < steps) return way.share;
  // The share that is all that is saved.
  const auto all = static_cast<std::int64_t>(
      std::min<Wide>(Wide{saved_bytes_} * 100 / std::max<std::int64_t>(link_bytes_, 1) + 1,
                     std::numeric_limits<std::int32_t>::max()));
  const auto more = static_cast<std::int64_t>(rung - steps) + 1;
  const std::int64_t rest = std::max<std::int64_t>(all - way.share, 0);
  return way.share + rest * more / static_cast<std::int64_t>(kMoreShares);
}

std::int64_t BestSearch::freed_bytes(std::size_t rung, const Way& way) {
  const Stairs& all = stairs(way.stairs);
  const std::int64_t saved = all.bytes(std::min(rung, all.steps() - 1));
  const Wide moved = Wide{link_bytes_} * share_at(rung, way) / 100;
  return static_cast<std::int64_t>(std::min<Wide>(moved, saved_bytes_)) - saved;
}

Candidate BestSearch::candidate(std::size_t rung, const Way& way) {
  const Stairs& all = stairs(way.stairs);
  const std::vector<Span> spans = all.spans(std::min(rung, all.steps() - 1));
  const std::shared_ptr<const Outlined> cut = outlined(spans);
  Mix mix = recompute_segments(cut->survey, cuts_of(spans, *cut));
  CoreOptions options;
  if (way.share > 0) {
    move_evenly(mix, cut->survey, bytes_of(share_at(rung, way)), way.window, options);
  }
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.outlined = cut;
  return made;
}

// What was seen for other budgets narrows it down.
BestSearch::Bisection BestSearch::begin(Way& way, const Limits& limits) {
  Bisection each{.way = &way, .least = 1, .fits = rungs(way), .near_bytes = limits.keep_bytes};
  for (const auto& [rung, cost] : way.seen) {
    if (!cost.fails && fits(cost, limits)) {
      each.fits = std::min(each.fits, rung);
      break;
    }
    each.least = rung + 1;
    each.near = rung;
    each.near_bytes = cost.device_reserved_bytes;
  }
  return each;
}

// The lowest rung that frees enough, if what the ladder says of the difference to a known rung
// holds; every third time the middle, so that a wrong guess costs little.
std::size_t BestSearch::guess(const Bisection& each, const Limits& limits) {
  if (each.probes % 3 == 2) return (each.least + each.fits) / 2;
  const std::int64_t wanted =
      freed_bytes(each.near, *each.way) + each.near_bytes - limits.budget_bytes;
  std::size_t low = each.least, high = each.fits - 1;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (freed_bytes(middle, *each.way) < wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<Candidate> BestSearch::next(Bisection& each, const Limits& limits,
                                          const Trials& trials) {
  const std::optional<Cost> best = trials.fitting(limits);
  while (each.open()) {
    const std::size_t rung = guess(each, limits);
    Candidate made = candidate(rung, *each.way);
    const Floor floor = trials.floor(made, limits);
    ++each.probes;
    if (floor.bytes > limits.budget_bytes) {
      each.least = rung + 1;
      each.near = rung;
      each.near_bytes = floor.bytes;
    } else if (best && floor.step_ns > best->step_ns) {
      each.fits = rung;
    } else {
      each.near = rung;
      return made;
    }
  }
  return std::nullopt;
}

void BestSearch::search(const What& what, const Limits& limits, Trials& trials, std::size_t every) {
  const std::size_t turn = searches_++ % every;
  std::vector<Bisection> open;
  for (Way& way : ways_) {
    if (way.stairs == 0) open.push_back(begin(way, limits));
  }
  bisect(std::move(open), what, limits, trials);
  if (comes_near(limits, trials)) {
    std::vector<Bisection> noisy;
    for (Way& way : ways_) {
      if (way.stairs > 0 && way.stairs % every == turn) noisy.push_back(begin(way, limits));
    }
    bisect(std::move(noisy), what, limits, trials);
  }
  if (!trials.fitting(limits)) try_least(what, trials);
}

// Where no spans of operators are known to fit, everything does.
bool BestSearch::comes_near(const Limits& limits, const Trials& trials) const {
  const std::optional<Cost> best = trials.fitting(limits);
  if (!best) return true;
  const Outlined* own = trials.best(limits)->candidate.outlined.get();
  if (!own || own->spans.empty()) return true;
  const sim::Time near = (best->step_ns - keep_ns_) * kNear / 100;
  for (const Way& way : ways_) {
    for (const auto& [rung, cost] : way.seen) {
      const bool fast = cost.step_ns - keep_ns_ <= near;
      if (way.stairs == 0 && fast && !cost.fails && fits(cost, limits)) return true;
    }
  }
  return false;
}

void BestSearch::bisect(std::vector<Bisection> open, const What& what, const Limits& limits,
                        Trials& trials) {
  for (;;) {
    std::vector<Candidate> round;
    std::vector<Bisection*> asked;
    for (Bisection& each : open) {
      std::optional<Candidate> made = next(each, limits, trials);
      if (!made) continue;
      round.push_back(*std::move(made));
      asked.push_back(&each);
    }
    if (round.empty()) break;
    const std::vector<Trials::Found> found = trials.within(what(), round, limits);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Bisection& each = *asked[i];
      const Cost& cost = found[i].tried->cost;
      each.way->seen[each.near] = cost;
      each.near_bytes = cost.device_reserved_bytes;
      const bool in = fits_soon(found[i].cost, cost, limits);
      (in ? each.fits : each.least) = in ? each.near : each.near + 1;
    }
  }
}

// What needs the least memory, whatever it takes: where all moves, with a window that has room for
// nothing as well, for then each copy is waited for.
void BestSearch::try_least(const What& what, Trials& trials) {
  std::vector<Candidate> last;
  for (const Way& way : ways_) {
    if (way.stairs == 0) last.push_back(candidate(rungs(way) - 1, way));
  }
  const std::size_t steps = spans_.empty() ? 0 : stairs(0).steps();
  for (std::size_t step = steps - std::min(steps, kLastSteps); step < steps; ++step) {
    for (const std::int64_t window : {0, 1}) {
      last.push_back(moving_all(stairs(0).spans(step), window));
    }
  }
  trials.of(what(), last);
}

Candidate BestSearch::moving_all(const std::vector<Span>& spans, std::int64_t window) {
  const std::shared_ptr<const Outlined> cut = outlined(spans);
  Mix mix = recompute_segments(cut->survey, cuts_of(spans, *cut));
  CoreOptions options;
  const auto share = static_cast<std::int64_t>(
      std::min<Wide>(Wide{saved_bytes_} * 200 / std::max<std::int64_t>(link_bytes_, 1) + 1,
                     std::numeric_limits<std::int32_t>::max()));
  move_evenly(mix, cut->survey, bytes_of(share), window, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.outlined = cut;
  return made;
}

}  // namespace ferry::plan
