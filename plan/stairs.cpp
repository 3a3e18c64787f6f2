#include "plan/stairs.h"

#include <algorithm>
#include <tuple>

namespace ferry::plan {
namespace {

// The largest spans of the ladders are this part of the largest of all, 1/1, 1/2, 1/4 ….
constexpr int kHalvings = 8;

std::int64_t largest(const std::vector<Span>& spans) {
  std::int64_t most = 0;
  for (const Span& span : spans) most = std::max(most, span.bytes);
  return most;
}

// `spans`: what is recomputed, in order of the forward.
std::int64_t saved_at_a_time(const std::vector<Span>& spans, std::int64_t saved_bytes) {
  std::int64_t most = 0, freed = 0;
  for (const Span& span : spans) {
    most = std::max(most, span.before_bytes - freed + span.bytes);
    freed += span.bytes;
  }
  return std::max(most, saved_bytes - freed);
}

}  // namespace

Stairs::Stairs(const std::vector<Span>& spans, std::int64_t saved_bytes) {
  std::vector<Step> all;
  std::vector<Span> some = spans;
  std::int64_t most = largest(spans);
  for (int halving = 0; halving < kHalvings && !some.empty(); ++halving, most /= 2) {
    const std::size_t before = some.size();
    std::erase_if(some, [most](const Span& span) { return span.bytes > most; });
    if (some.empty() || (some.size() == before && halving > 0)) continue;
    const std::size_t ladder = ladders_.size();
    ladders_.emplace_back(some);
    for (std::size_t rung = 0; rung < ladders_[ladder].rungs(); ++rung) {
      const std::int64_t bytes = saved_at_a_time(ladders_[ladder].spans(rung), saved_bytes);
      all.push_back({bytes, ladders_[ladder].ns(rung), ladder, rung});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Step& a, const Step& b) {
    return std::tuple(a.ns, a.bytes) < std::tuple(b.ns, b.bytes);
  });
  for (const Step& step : all) {
    if (steps_.empty() || step.bytes < steps_.back().bytes) steps_.push_back(step);
  }
}

std::vector<Span> Stairs::spans(std::size_t step) const {
  return ladders_[steps_[step].ladder].spans(steps_[step].rung);
}

}  // namespace ferry::plan
