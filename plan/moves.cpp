#include "plan/moves.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// The part of the saved bytes, from the first one on, over which move_evenly spreads what moves, in
// percent. Larger: the copies are further apart, and the last ones leave closer to backward.
constexpr std::int64_t kSpread = 85;
// Bound on what the core may hold after a copy back, in multiples of the largest storage that moves
// in time. Larger: fewer repeated copies, more memory in backward.
constexpr std::int64_t kHeld = 4;

void mark_moves(Mix& mix, const Survey& survey, const std::set<std::uint64_t>& moves) {
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
}

}  // namespace

std::map<std::uint64_t, Staying> staying(const Survey& survey, const Mix& mix,
                                         std::int64_t min_bytes) {
  std::map<std::uint64_t, Staying> all;
  const auto see = [&](const PackedTensor& tensor, std::size_t at) {
    if (tensor.global || tensor.storage_bytes < min_bytes) return;
    const auto known = all.try_emplace(tensor.group, Staying{.first = at}).first;
    Staying& here = known->second;
    here.first = std::min(here.first, at);
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

std::int64_t link_bytes(const KeepTrace& keep, const Hardware& hardware) {
  Wide forward_ns = 0;
  for (const TracedKernel& kernel : keep.kernels) {
    if (kernel.forward) forward_ns += kernel.ns;
  }
  return static_cast<std::int64_t>(std::min<Wide>(forward_ns * hardware.link.d2h_alone / 1000,
                                                  std::numeric_limits<std::int64_t>::max() / 100));
}

void move_evenly(Mix& mix, const Survey& survey, std::int64_t most, std::int64_t window,
                 CoreOptions& options) {
  const std::map<std::uint64_t, Staying> all = staying(survey, mix, options.min_bytes);
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
  mark_moves(mix, survey, moves);
  options.window_bytes = options.prefetch_bytes = options.hold_bytes = largest * window;
}

std::vector<sim::Time> kernel_ends(const KeepTrace& keep, sim::Time launch_ns) {
  std::vector<sim::Time> ends = {0};
  sim::Time launched = 0;
  for (const TracedKernel& kernel : keep.kernels) {
    ends.push_back(std::max(ends.back(), launched) + kernel.ns);
    launched += launch_ns;
  }
  return ends;
}

void move_in_time(Mix& mix, const Survey& survey, const std::vector<sim::Time>& ends,
                  sim::Time turn_ns, const Link& link, const InTime& how, CoreOptions& options) {
  if (survey.packs.empty()) return;
  const auto packed_ns = [&](std::size_t pack) {
    return ends[std::min<std::size_t>(survey.packs[pack].kernels, ends.size() - 1)];
  };
  const std::map<std::uint64_t, Staying> all = staying(survey, mix, options.min_bytes);
  std::vector<std::pair<std::size_t, std::uint64_t>> order;
  for (const auto& [group, here] : all) order.emplace_back(here.first, group);
  std::sort(order.begin(), order.end());
  const std::size_t last = survey.packs.size() - 1;
  std::vector<std::pair<std::size_t, std::uint64_t>> sent;
  sim::Time free_ns = 0, next_ns = 0;  // when the link is free; when the pace allows the next copy
  std::size_t lag = 1;                 // saves until every copy so far has ended
  std::int64_t largest = 0;
  for (const auto& [pack, group] : order) {
    const std::int64_t bytes = all.at(group).bytes;
    const sim::Time copy_ns =
        link.latency_ns + static_cast<sim::Time>(Wide{bytes} * 1000 / link.d2h_alone) + 1;
    const sim::Time now = packed_ns(pack), end = std::max(free_ns, now) + copy_ns;
    if (now < next_ns || end > turn_ns / 100 * how.until) continue;
    free_ns = end;
    next_ns = now + copy_ns * 100 / how.pace;
    while (pack + lag < last && packed_ns(pack + lag) < end) ++lag;
    sent.emplace_back(pack, group);
  }
  std::set<std::uint64_t> moves;
  for (const auto& [pack, group] : sent) {
    if (how.room > 0 && pack + lag > last) continue;
    moves.insert(group);
    largest = std::max(largest, all.at(group).bytes);
  }
  mark_moves(mix, survey, moves);
  options.window_tensors = static_cast<std::int64_t>(lag);
  options.window_bytes = kUnlimited;
  if (how.room > 0) {
    options.prefetch_bytes = options.hold_bytes = largest * how.room;
    return;
  }
  options.prefetch_bytes = kUnlimited;
  options.prefetch_tensors = static_cast<std::int64_t>(how.ahead);
  options.hold_bytes = largest * kHeld;
}

}  // namespace ferry::plan
