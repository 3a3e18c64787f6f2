#include "plan/candidates.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

namespace ferry::plan {
namespace {

// Number of equal parts ("shares") into which the movable bytes are divided; offload_candidates
// tries 1 to kShares of them. Larger: finer steps, more candidates.
constexpr std::int64_t kShares = 48;
// A program with more saved tensors than this is large: its steps take long to simulate, so fewer
// candidates are made (kShareSteps, half of kSegmentParts, only the middle window). Larger: more
// programs get the full lists.
constexpr std::size_t kManyPacks = 4'000;
// Step in shares between the candidates of a large program. Larger: fewer candidates.
constexpr std::int64_t kShareSteps = 4;
// Windows to try: 1/64, 1/16 and 1/4 of the movable bytes. A larger number: a smaller window.
constexpr std::array<std::int64_t, 3> kWindowParts = {64, 16, 4};
// The moved storages are spread over so many of the first shares; 0: over as many as move. Larger:
// the copies are further apart.
constexpr std::array<std::int64_t, 4> kSpreads = {0, 24, 36, 48};
// Smallest window, in bytes. Larger: more memory for copies in small programs.
constexpr std::int64_t kLeastWindow = std::int64_t{1} << 20;

// Number of equal steps from no segment to all segments, in mixed and recompute-and-offload
// candidates. Larger: more candidates.
constexpr std::size_t kSegmentParts = 8;
// The number of steps for candidates that recompute only.
constexpr std::size_t kRecomputed = 128;
// Shares of the other bytes that mixed candidates offload, in parts of kShares.
constexpr std::array<std::int64_t, 5> kMixedShares = {0, 12, 24, 36, 48};
// The part of a segment's saved bytes that mixed candidates recompute, in quarters.
constexpr std::array<std::int64_t, 3> kCuts = {4, 3, 2};

bool is_large(const Survey& survey) { return survey.packs.size() > kManyPacks; }

std::size_t segment_parts(const Survey& survey) {
  return is_large(survey) ? kSegmentParts / 2 : kSegmentParts;
}

std::span<const std::int64_t> window_parts(const Survey& survey) {
  const std::span<const std::int64_t> all(kWindowParts);
  return is_large(survey) ? all.subspan(1, 1) : all;
}

// The storages that may be offloaded, in the order in which they are saved.
struct Movable {
  std::vector<std::int64_t> bytes;   // by group; 0: it may not move
  std::vector<std::uint64_t> order;  // groups, in order
  std::int64_t total = 0;
};

std::int64_t movable_bytes(const PackedTensor& pack) {
  return !pack.global && pack.storage_bytes >= CoreOptions().min_bytes ? pack.storage_bytes : 0;
}

// Collects the movable storages that are not recomputed.
Movable movable(const Survey& survey, const Mix& mix) {
  Movable result;
  for (std::size_t i = 0; i < survey.packs.size(); ++i) {
    const PackedTensor& pack = survey.packs[i];
    if (mix.packs[i] == PlanChoice::kRecompute) continue;
    if (pack.group >= result.bytes.size()) result.bytes.resize(pack.group + 1, 0);
    const std::int64_t bytes = movable_bytes(pack);
    if (bytes == 0 || result.bytes[pack.group] != 0) continue;
    result.bytes[pack.group] = bytes;
    result.order.push_back(pack.group);
    result.total += bytes;
  }
  return result;
}

// Orders the storages by their last save. A storage that a late layer also saves (a skip tensor) is
// needed back soon.
Movable by_last_pack(const Survey& survey, Movable all) {
  std::vector<std::size_t> last(all.bytes.size());
  for (std::size_t i = 0; i < survey.packs.size(); ++i) {
    if (survey.packs[i].group < last.size()) last[survey.packs[i].group] = i;
  }
  std::stable_sort(all.order.begin(), all.order.end(),
                   [&last](std::uint64_t a, std::uint64_t b) { return last[a] < last[b]; });
  return all;
}

// Selects `share` shares of the bytes, evenly among the first `spread` shares. Backward needs the
// first storages last, and an even load keeps both directions of the link busy without a queue.
// Storages that would still be in the window when backward begins are not selected: their copies
// would be unused.
std::vector<bool> select_groups(const Movable& all, std::int64_t share, std::int64_t spread,
                                std::int64_t window_bytes) {
  std::vector<bool> moves(all.bytes.size(), false);
  std::int64_t seen = 0;
  std::int64_t moved = 0;
  for (const std::uint64_t group : all.order) {
    if (seen >= all.total / kShares * spread) break;
    seen += all.bytes[group];
    if (moved >= seen / spread * share || seen > all.total - window_bytes) continue;
    moves[group] = true;
    moved += all.bytes[group];
  }
  return moves;
}

void move(Mix& mix, const Survey& survey, const std::vector<bool>& groups) {
  for (std::size_t i = 0; i < survey.packs.size(); ++i) {
    const std::uint64_t group = survey.packs[i].group;
    if (mix.packs[i] == PlanChoice::kKeep && group < groups.size() && groups[group]) {
      mix.packs[i] = PlanChoice::kOffload;
    }
  }
}

CoreOptions window_of(const Survey& survey, std::int64_t bytes, std::int64_t part) {
  CoreOptions options;
  options.window_bytes = std::max(bytes / part, kLeastWindow);
  options.window_tensors = static_cast<std::int64_t>(survey.packs.size()) / part + 1;
  options.prefetch_bytes = options.window_bytes;
  options.hold_bytes = options.window_bytes;
  return options;
}

// Recomputes the first `quarters` of the bytes that the segment saves, and offloads what it saves
// after that. A reentrant segment is always recomputed whole. Globals (parameters, buffers, inputs)
// are kept.
void recompute(Mix& mix, const Survey& survey, std::size_t segment, std::int64_t quarters) {
  const SurveyedSegment& here = survey.segments[segment];
  std::int64_t all = 0;
  for (std::size_t i = here.first; i < here.end; ++i) all += movable_bytes(survey.packs[i]);
  std::int64_t seen = 0;
  mix.recompute[segment] = true;
  for (std::size_t i = here.first; i < here.end; ++i) {
    const PackedTensor& pack = survey.packs[i];
    const bool before = seen * 4 < all * quarters || quarters == 4 || here.whole;
    seen += movable_bytes(pack);
    if (pack.global && !here.whole) {
      mix.packs[i] = PlanChoice::kKeep;
    } else {
      mix.packs[i] = before ? PlanChoice::kRecompute : PlanChoice::kOffload;
    }
  }
}

// Recomputes `count` segments: evenly spread from the first one on, or else the `count` segments
// before the last one. Backward needs the last segment first, so recomputing it does not lower the
// peak.
Mix recompute_some(const Survey& survey, std::size_t count, bool spread, std::int64_t quarters) {
  Mix mix = keep_all(survey);
  const std::size_t all = survey.segments.size();
  for (std::size_t i = 0; i < all; ++i) {
    const bool chosen =
        spread ? i * count % all < count : count == all || (i + 1 < all && i + 1 + count >= all);
    if (chosen) recompute(mix, survey, i, quarters);
  }
  return mix;
}

// Offloads the inputs, except globals, of the recomputed ones among the first `segments` segments.
void move_inputs(Mix& mix, const Survey& survey, std::size_t segments) {
  for (std::size_t s = 0; s < segments; ++s) {
    for (std::size_t i = 0; i < mix.input_moves[s].size(); ++i) {
      mix.input_moves[s][i] = mix.recompute[s] && !survey.segments[s].inputs[i].global;
    }
  }
}

void append(std::vector<Candidate>& candidates, std::vector<Candidate> more) {
  std::move(more.begin(), more.end(), std::back_inserter(candidates));
}

// Returns the counts of segments to recompute, from 0 to all, in about `parts` equal steps.
std::vector<std::size_t> counts(const Survey& survey, std::size_t parts) {
  std::vector<std::size_t> result;
  const std::size_t all = survey.segments.size();
  for (std::size_t part = 0; part <= parts; ++part) {
    const std::size_t count = all * part / parts;
    if (result.empty() || result.back() != count) result.push_back(count);
  }
  return result;
}

}  // namespace

Candidate settled(CoreOptions options, Mix mix, const Survey& survey) {
  settle(mix, survey, options.min_bytes);
  options.offload = offload_choices(survey, mix);
  const auto& moves = options.offload;
  if (std::find(moves.begin(), moves.end(), true) == moves.end()) {
    return {std::nullopt, std::move(mix)};
  }
  return {std::move(options), std::move(mix)};
}

Candidate offload_all(const Survey& survey) {
  return {std::nullopt, offload(survey).mix, /*trl=*/true};
}

Candidate recompute_and_offload_all(const Survey& survey) {
  return {std::nullopt, recompute_all(survey).mix, /*trl=*/true};
}

Candidate offload(const Survey& survey) {
  Mix all = keep_all(survey);
  std::fill(all.packs.begin(), all.packs.end(), PlanChoice::kOffload);
  settle(all, survey, CoreOptions().min_bytes);
  return {CoreOptions{}, std::move(all)};
}

std::vector<Candidate> offload_candidates(const Survey& survey) {
  const Movable all = movable(survey, keep_all(survey));
  std::vector<Candidate> candidates = {settled({}, keep_all(survey), survey)};
  const auto add = [&](const Movable& of, const CoreOptions& options, std::int64_t share,
                       std::int64_t spread) {
    Mix mix = keep_all(survey);
    move(mix, survey, select_groups(of, share, spread, options.window_bytes));
    candidates.push_back(settled(options, std::move(mix), survey));
  };
  const std::int64_t step = is_large(survey) ? kShareSteps : 1;
  for (std::int64_t share = step; share <= kShares; share += step) {
    for (const std::int64_t spread : kSpreads) {
      if (spread != 0 && spread <= share) continue;
      for (const std::int64_t part : window_parts(survey)) {
        add(all, window_of(survey, all.total, part), share, std::max(spread, share));
      }
    }
  }
  // The first storages may be large, and the next saves follow soon. So their copies get until the
  // middle of the forward before computing waits for them.
  CoreOptions late = window_of(survey, all.total, kWindowParts.back());
  late.window_tensors = static_cast<std::int64_t>(survey.packs.size()) / 2 + 1;
  const Movable by_last = by_last_pack(survey, all);
  for (std::int64_t share = step; share <= kShares / 2; share += step) {
    add(by_last, late, share, share);
  }
  return candidates;
}

Candidate recompute_all(const Survey& survey) {
  return {std::nullopt, recompute_some(survey, survey.segments.size(), true, 4)};
}

std::vector<Candidate> recompute_candidates(const Survey& survey) {
  std::vector<Candidate> candidates;
  for (const std::size_t count : counts(survey, kRecomputed)) {
    candidates.push_back({std::nullopt, recompute_some(survey, count, true, 4)});
  }
  return candidates;
}

std::vector<Candidate> recompute_and_offload_candidates(const Survey& survey) {
  std::int64_t total = 0;
  for (const SurveyedSegment& segment : survey.segments) {
    for (const PackedTensor& input : segment.inputs) total += movable_bytes(input);
  }
  std::vector<Candidate> candidates;
  std::vector<std::size_t> moved = counts(survey, segment_parts(survey));
  moved.push_back(survey.segments.size() - 1);  // backward needs the last segment's inputs at once
  for (const std::size_t count : moved) {
    if (count == 0) continue;  // the same as recompute_all
    for (const std::int64_t part : window_parts(survey)) {
      Mix mix = recompute_all(survey).mix;
      move_inputs(mix, survey, count);
      CoreOptions options = window_of(survey, total, part);
      options.window_tensors = static_cast<std::int64_t>(survey.segments.size()) / part + 1;
      candidates.push_back(settled(options, std::move(mix), survey));
    }
  }
  return candidates;
}

std::vector<Candidate> mixed_candidates(const Survey& survey) {
  std::vector<Candidate> candidates = recompute_candidates(survey);
  append(candidates, offload_candidates(survey));
  append(candidates, recompute_and_offload_candidates(survey));
  candidates.push_back(offload(survey));
  const std::int64_t bytes = movable(survey, keep_all(survey)).total;
  for (const std::size_t count : counts(survey, segment_parts(survey))) {
    for (const bool spread : {true, false}) {
      for (const std::int64_t quarters : kCuts) {
        const bool once = count == 0 || count == survey.segments.size();
        if ((once && !spread) || (count == 0 && quarters != 4)) continue;
        const Mix some = recompute_some(survey, count, spread, quarters);
        if (quarters == 4) candidates.push_back({std::nullopt, some});
        const Movable rest = movable(survey, some);
        for (const std::int64_t share : kMixedShares) {
          for (const bool inputs : {false, true}) {
            if (inputs && count == 0) continue;
            for (const std::int64_t part : window_parts(survey)) {
              const CoreOptions options = window_of(survey, bytes, part);
              Mix mix = some;
              if (share > 0) {
                move(mix, survey, select_groups(rest, share, kShares, options.window_bytes));
              }
              if (inputs) move_inputs(mix, survey, mix.recompute.size());
              candidates.push_back(settled(options, std::move(mix), survey));
            }
          }
        }
      }
    }
  }
  return candidates;
}

}  // namespace ferry::plan
