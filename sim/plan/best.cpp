#include "sim/plan/best.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "formats/modules.h"
#include "formats/outline.h"
#include "sim/plan/keep_trace.h"

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::array<std::int64_t, 3> kShares = {45, 80, 100};  // in hundredths
constexpr std::array<std::int64_t, 2> kWindows = {4, 10};       // of the largest that moves
constexpr std::size_t kLadders = 8;
constexpr std::uint64_t kNoise = 15;  // in hundredths of a span's time, either way
constexpr std::int64_t kSpread = 85;  // in hundredths of the bytes that stay

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

struct Staying {
  std::size_t last = 0;  // its last pack; the higher, the sooner it is needed back
  std::int64_t bytes = 0;
};

// What stays and may move, by storage.
std::map<std::uint64_t, Staying> staying(const Survey& survey, const Mix& mix,
                                         std::int64_t bytes_min) {
  std::map<std::uint64_t, Staying> all;
  const auto see = [&](const PackedTensor& tensor, std::size_t at) {
    if (tensor.global || tensor.storage_bytes < bytes_min) return;
    Staying& here = all[tensor.group];
    here.last = std::max(here.last, at);
    here.bytes = tensor.storage_bytes;
  };
  for (std::size_t p = 0; p < survey.packs.size(); ++p) {
    if (mix.packs[p] != PlanChoice::kRecompute) see(survey.packs[p], p);
  }
  for (const SurveyedSegment& segment : survey.segments) {
    for (const PackedTensor& input : segment.inputs) see(input, segment.first);
  }
  return all;
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

}  // namespace

BestSearch::BestSearch(const Program& program, const Hardware& hardware)
    : program_(program), hardware_(hardware) {
  const std::vector<Span> spans = module_spans(program, hardware);
  if (spans.empty()) return;
  for (std::size_t i = 0; i < kLadders; ++i) ladders_.emplace_back(noisy(spans, i));
  if (marks_calls(program)) calls_ = segment_modules(program);
  Wide forward_ns = 0;
  for (const TracedKernel& kernel : trace_keep(program, hardware).kernels) {
    if (kernel.forward) forward_ns += kernel.ns;
  }
  link_bytes_ = static_cast<std::int64_t>(std::min<Wide>(
      forward_ns * hardware.link.d2h_alone / 1000, std::numeric_limits<std::int64_t>::max() / 100));
}

std::shared_ptr<const Outlined> BestSearch::outlined(const std::vector<Span>& spans) {
  std::vector<std::string> names = calls_;
  if (names.empty()) {
    for (const Span& span : spans) names.push_back(span.module);
  }
  std::shared_ptr<const Outlined>& known = outlined_[names];
  if (known) return known;
  Program cut = names.empty() ? program_ : outline(program_, names);
  Survey surveyed = survey(cut, hardware_);
  known = std::make_shared<const Outlined>(
      Outlined{std::move(names), std::move(cut), std::move(surveyed)});
  return known;
}

// An even load keeps the link busy without a queue.
void BestSearch::move_some(Mix& mix, const Survey& survey, const Way& way,
                           CoreOptions& options) const {
  const std::map<std::uint64_t, Staying> all = staying(survey, mix, options.bytes_min);
  const std::int64_t most = link_bytes_ * way.share / 100;
  std::vector<std::pair<std::size_t, std::uint64_t>> order;
  std::int64_t total = 0;
  for (const auto& [group, here] : all) {
    if (here.bytes > most) continue;
    order.emplace_back(here.last, group);
    total += here.bytes;
  }
  std::sort(order.begin(), order.end());
  const std::int64_t wanted = std::min(most, total);
  const std::int64_t spread =
      std::max(static_cast<std::int64_t>(Wide{total} * kSpread / 100), wanted);
  std::set<std::uint64_t> moves;
  std::int64_t seen = 0, moved = 0, largest = 0;
  for (const auto& [last, group] : order) {
    const std::int64_t bytes = all.at(group).bytes;
    if (seen >= spread) break;
    seen += bytes;
    if (Wide{moved} * spread >= Wide{seen} * wanted || moved + bytes > wanted) continue;
    moves.insert(group);
    moved += bytes;
    largest = std::max(largest, bytes);
  }
  for (std::size_t p = 0; p < survey.packs.size(); ++p) {
    if (mix.packs[p] == PlanChoice::kKeep && moves.contains(survey.packs[p].group)) {
      mix.packs[p] = PlanChoice::kOffload;
    }
  }
  for (std::size_t s = 0; s < survey.segments.size(); ++s) {
    for (std::size_t i = 0; i < survey.segments[s].inputs.size(); ++i) {
      mix.input_moves[s][i] = moves.contains(survey.segments[s].inputs[i].group);
    }
  }
  options.window_bytes = options.prefetch_bytes = options.hold_bytes = largest * way.window;
}

Candidate BestSearch::candidate(std::size_t rung, const Way& way) {
  const std::vector<Span> spans = ladders_[way.ladder].spans(rung);
  const std::shared_ptr<const Outlined> cut = outlined(spans);
  Mix mix = recompute_segments(cut->survey, cuts_of(spans, *cut));
  CoreOptions options;
  if (way.share > 0) move_some(mix, cut->survey, way, options);
  Candidate made = settled(std::move(options), std::move(mix), cut->survey);
  made.outlined = cut;
  return made;
}

std::vector<Candidate> BestSearch::search(const Limits& limits, const CostsOf& costs_of) {
  std::vector<Bisection> open;
  for (std::size_t i = 0; i < ladders_.size(); ++i) {
    const std::size_t rungs = ladders_[i].rungs();
    open.push_back({{.ladder = i}, 1, rungs});
    if (i > 0) continue;
    for (const std::int64_t share : kShares) {
      for (const std::int64_t window : kWindows) {
        open.push_back({{.ladder = i, .share = share, .window = window}, 1, rungs});
      }
    }
  }
  std::erase_if(open, [](const Bisection& each) { return each.least >= each.fits; });
  std::vector<Candidate> tried;
  while (!open.empty()) {
    std::vector<Candidate> round;
    for (const Bisection& each : open) {
      round.push_back(candidate((each.least + each.fits) / 2, each.way));
    }
    const std::vector<Cost> costs = costs_of(round);
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::size_t middle = (open[i].least + open[i].fits) / 2;
      const bool in = !costs[i].fails && fits(costs[i], limits);
      (in ? open[i].fits : open[i].least) = in ? middle : middle + 1;
    }
    std::move(round.begin(), round.end(), std::back_inserter(tried));
    std::erase_if(open, [&](const Bisection& each) { return each.least >= each.fits; });
  }
  return tried;
}

}  // namespace ferry::plan
