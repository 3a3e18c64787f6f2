#include "sim/plan/moves.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kSpread = 85;  // in hundredths of the bytes that stay

}  // namespace

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
  const std::map<std::uint64_t, Staying> all = staying(survey, mix, options.bytes_min);
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
  options.window_bytes = options.prefetch_bytes = options.hold_bytes = largest * window;
}

}  // namespace ferry::plan
