#include "sim/gpu/segment_order.h"

#include <algorithm>

namespace ferry::sim {
namespace {

bool go_down(const std::vector<MemoryEvent>& trace) {
  std::int64_t downwards = 0;
  const MemoryEvent* last = nullptr;
  for (const MemoryEvent& event : trace) {
    if (event.action != MemoryAction::kSegmentAlloc) continue;
    if (last != nullptr) downwards += event.address < last->address ? 1 : -1;
    last = &event;
  }
  return downwards > 0;
}

}  // namespace

SegmentOrder::SegmentOrder(std::vector<MemorySegment> segments,
                           const std::vector<MemoryEvent>& trace)
    : segments_(std::move(segments)) {
  if (go_down(trace)) std::reverse(segments_.begin(), segments_.end());
}

// Takes, again and again, the first segment that no older one precedes.
std::vector<MemorySegment> SegmentOrder::segments() const {
  std::vector<MemorySegment> ordered;
  std::vector<std::size_t> left(segments_.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty()) {
    const auto oldest = std::find_if(left.begin(), left.end(), [&](std::size_t one) {
      return std::none_of(left.begin(), left.end(), [&](std::size_t other) {
        return older_.contains({other, one});
      });
    });
    ordered.push_back(segments_[*oldest]);
    left.erase(oldest);
  }
  return ordered;
}

bool SegmentOrder::learn(std::uint64_t older, std::uint64_t newer) {
  const std::size_t first = segment_of(older), second = segment_of(newer);
  if (first == second || first == segments_.size() || second == segments_.size()) return false;
  if (is_older(second, first)) return false;
  return older_.insert({first, second}).second;
}

std::size_t SegmentOrder::segment_of(std::uint64_t address) const {
  const auto found = std::find_if(segments_.begin(), segments_.end(), [&](const auto& segment) {
    return address - segment.address < static_cast<std::uint64_t>(segment.bytes);
  });
  return static_cast<std::size_t>(found - segments_.begin());
}

// True if `one` is older by a pair that was learned, or by a chain of such pairs.
bool SegmentOrder::is_older(std::size_t one, std::size_t other) const {
  std::vector<std::size_t> reached{one};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (auto at = older_.lower_bound({reached[i], 0});
         at != older_.end() && at->first == reached[i]; ++at) {
      if (std::find(reached.begin(), reached.end(), at->second) == reached.end()) {
        reached.push_back(at->second);
      }
    }
  }
  return std::find(reached.begin(), reached.end(), other) != reached.end();
}

}  // namespace ferry::sim
