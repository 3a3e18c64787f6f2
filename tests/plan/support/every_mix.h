// Enumerates all plans of a small program: every choice for every saved tensor and every segment,
// with the segment's inputs kept or offloaded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "plan/mix.h"
#include "plan/survey.h"

namespace ferry::test {

// Returns two sets of options: one waits for each copy and prefetches early; the other has a window
// of two storages and does not prefetch.
inline std::vector<CoreOptions> windows(const plan::Survey& found) {
  std::int64_t bytes = 0;
  for (const plan::PackedTensor& pack : found.packs) {
    if (!pack.exempt) bytes = std::max(bytes, 2 * pack.storage_bytes);
  }
  CoreOptions early, late;
  early.window_bytes = late.prefetch_bytes = 0;
  early.prefetch_bytes = late.window_bytes = bytes;
  early.hold_bytes = late.hold_bytes = bytes;
  return {early, late};
}

// True if every recomputed tensor is inside a recomputed segment.
inline bool recomputes_in_segments_alone(const plan::Survey& found, const plan::Mix& mix) {
  std::vector<bool> may(found.packs.size(), false);
  for (std::size_t s = 0; s < found.segments.size(); ++s) {
    for (std::size_t p = found.segments[s].first; p < found.segments[s].end; ++p) {
      may[p] = mix.recompute[s];
    }
  }
  for (std::size_t p = 0; p < may.size(); ++p) {
    if (mix.packs[p] == PlanChoice::kRecompute && !may[p]) return false;
  }
  return true;
}

// Advances to the next combination, the last digit fastest. Returns false after the last one.
inline bool next(std::vector<int>& digits, const std::vector<int>& ways) {
  for (std::size_t i = digits.size(); i-- > 0;) {
    if (++digits[i] < ways[i]) return true;
    digits[i] = 0;
  }
  return false;
}

inline void for_each_mix(const plan::Survey& found,
                         const std::function<void(const plan::Mix&)>& each) {
  std::vector<std::function<void(plan::Mix&, int)>> choices;
  std::vector<int> ways;
  for (std::size_t s = 0; s < found.segments.size(); ++s) {
    ways.push_back(3);  // not recomputed; recomputed; recomputed, and its inputs offloaded
    choices.push_back([s, &found](plan::Mix& mix, int way) {
      mix.recompute[s] = way > 0;
      mix.input_moves[s].assign(found.segments[s].inputs.size(), way == 2);
    });
  }
  for (std::size_t p = 0; p < found.packs.size(); ++p) {
    if (found.packs[p].exempt) continue;
    ways.push_back(3);
    choices.push_back(
        [p](plan::Mix& mix, int way) { mix.packs[p] = static_cast<PlanChoice>(way); });
  }
  std::vector<int> digits(ways.size(), 0);
  do {
    plan::Mix mix = plan::keep_all(found);
    for (std::size_t i = 0; i < digits.size(); ++i) choices[i](mix, digits[i]);
    if (recomputes_in_segments_alone(found, mix)) each(mix);
  } while (next(digits, ways));
}

}  // namespace ferry::test
