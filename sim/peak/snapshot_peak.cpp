#include "sim/peak/snapshot_peak.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "formats/error.h"

namespace ferry::peak {
namespace {

constexpr std::int64_t kBlockGrain = 512;  // the allocator's sizes are multiples of this
constexpr std::int64_t kSumMost = std::int64_t{1} << 62;

// Adds bytes of at most limits::kBytes. A file can list more than any memory has.
void add(std::int64_t& sum, std::int64_t bytes) {
  sum += bytes;
  if (sum > kSumMost) throw LimitReached("the snapshot has more than 2^62 bytes at a time");
}

// The segments of a device. Parts of expandable segments are merged where they touch, because one
// block may lie in both.
class Segments {
 public:
  struct Segment {
    std::uint64_t end = 0;
    bool expandable = false;
  };

  void add(std::uint64_t begin, std::int64_t bytes) {
    segments_[begin] = {begin + static_cast<std::uint64_t>(bytes), false};
  }
  bool remove(std::uint64_t begin) { return segments_.erase(begin) != 0; }

  void map(std::uint64_t begin, std::int64_t bytes) {
    std::uint64_t end = begin + static_cast<std::uint64_t>(bytes);
    if (const auto after = segments_.find(end);
        after != segments_.end() && after->second.expandable) {
      end = after->second.end;
      segments_.erase(after);
    }
    const auto next = segments_.upper_bound(begin);
    if (next != segments_.begin()) {
      Segment& before = std::prev(next)->second;
      if (before.expandable && before.end == begin) {
        before.end = end;
        return;
      }
    }
    segments_[begin] = {end, true};
  }

  bool unmap(std::uint64_t begin, std::int64_t bytes) {
    const std::uint64_t end = begin + static_cast<std::uint64_t>(bytes);
    const auto next = segments_.upper_bound(begin);
    if (next == segments_.begin()) return false;
    const auto found = std::prev(next);
    const auto [first, segment] = *found;
    if (!segment.expandable || segment.end < end) return false;
    segments_.erase(found);
    if (first < begin) segments_[first] = {begin, true};
    if (end < segment.end) segments_[end] = {segment.end, true};
    return true;
  }

  const std::map<std::uint64_t, Segment>& all() const { return segments_; }

 private:
  std::map<std::uint64_t, Segment> segments_;
};

// The memory of one device, which goes back and forth in its history.
class Memory {
 public:
  Memory(const MemorySnapshot& snapshot, std::uint32_t device) {
    for (const MemorySegment& segment : snapshot.segments) {
      if (segment.device != device) continue;
      if (segment.expandable) {
        segments_.map(segment.address, segment.bytes);
      } else {
        segments_.add(segment.address, segment.bytes);
      }
      for (const MemoryBlock& block : segment.blocks) {
        if (block.state == BlockState::kInactive) continue;
        blocks_[block.address] = {block.address, block.requested_bytes, std::nullopt, block.stack,
                                  block.state == BlockState::kPendingFree};
      }
    }
  }

  void undo(const MemoryEvent& event) {
    switch (event.action) {
      case MemoryAction::kAlloc:
        return expect(blocks_.erase(event.address) != 0);
      case MemoryAction::kFreeRequested:
        return set_pending(event, false);
      case MemoryAction::kFreeCompleted:
        expect(!blocks_.contains(event.address));
        blocks_[event.address] = {event.address, event.bytes, std::nullopt, kNoStack, true};
        return;
      case MemoryAction::kSegmentAlloc:
        return expect(segments_.remove(event.address));
      case MemoryAction::kSegmentFree:
        return segments_.add(event.address, event.bytes);
      case MemoryAction::kSegmentMap:
        return expect(segments_.unmap(event.address, event.bytes));
      case MemoryAction::kSegmentUnmap:
        return segments_.map(event.address, event.bytes);
      default:
        return;
    }
  }

  void redo(const MemoryEvent& event, std::size_t entry) {
    switch (event.action) {
      case MemoryAction::kAlloc:
        free(event.address);
        blocks_[event.address] = {event.address, event.bytes, entry, event.stack, false};
        return add(allocated_, event.bytes);
      case MemoryAction::kFreeRequested:
        return set_pending(event, true);
      case MemoryAction::kFreeCompleted:
        return free(event.address);
      case MemoryAction::kSegmentAlloc:
        return segments_.add(event.address, event.bytes);
      case MemoryAction::kSegmentFree:
        segments_.remove(event.address);
        return;
      case MemoryAction::kSegmentMap:
        return segments_.map(event.address, event.bytes);
      case MemoryAction::kSegmentUnmap:
        segments_.unmap(event.address, event.bytes);
        return;
      default:
        return;
    }
  }

  // Call it before the first redo.
  void count_allocated() {
    allocated_ = 0;
    for (const auto& [address, block] : blocks_) add(allocated_, block.pending ? 0 : block.bytes);
  }
  std::int64_t allocated() const { return allocated_; }
  std::size_t mismatches() const { return mismatches_; }

  // Stores the blocks, the reserved bytes and the unused ones.
  void describe(Moment& moment) const {
    for (const auto& [address, block] : blocks_) {
      moment.blocks.push_back(block);
      if (block.pending) add(moment.unused.pending_bytes, block.bytes);
    }
    for (const auto& [begin, segment] : segments_.all()) {
      add(moment.reserved_bytes, static_cast<std::int64_t>(segment.end - begin));
      describe(begin, segment.end, moment.unused);
    }
  }

 private:
  void expect(bool fits) { mismatches_ += fits ? 0 : 1; }

  void set_pending(const MemoryEvent& event, bool pending) {
    const auto found = blocks_.find(event.address);
    if (found == blocks_.end()) {
      expect(false);
      if (!pending) blocks_[event.address] = {event.address, event.bytes, {}, kNoStack, false};
      return;
    }
    LiveBlock& block = found->second;
    if (block.pending == pending) return expect(false);
    block.pending = pending;
    add(allocated_, pending ? -block.bytes : block.bytes);
  }

  void free(std::uint64_t address) {
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return;
    if (!found->second.pending) allocated_ -= found->second.bytes;
    blocks_.erase(found);
  }

  void describe(std::uint64_t begin, std::uint64_t end, Unused& unused) const {
    std::uint64_t at = begin;
    const auto hole = [&](std::uint64_t until) {
      if (until <= at) return;
      const auto bytes = static_cast<std::int64_t>(until - at);
      unused.holes_bytes += bytes;
      ++unused.holes;
      unused.largest_hole_bytes = std::max(unused.largest_hole_bytes, bytes);
    };
    auto block = blocks_.lower_bound(begin);
    if (block == blocks_.end() || block->first >= end) {
      unused.cached_bytes += static_cast<std::int64_t>(end - begin);
      ++unused.cached_segments;
      return;
    }
    for (; block != blocks_.end() && block->first < end; ++block) {
      hole(block->first);
      const std::int64_t bytes = block->second.bytes;
      const std::int64_t grains = (bytes + kBlockGrain - 1) / kBlockGrain;
      unused.holes_bytes += grains * kBlockGrain - bytes;
      at = std::max(at, block->first + static_cast<std::uint64_t>(grains * kBlockGrain));
    }
    hole(end);
  }

  Segments segments_;
  std::map<std::uint64_t, LiveBlock> blocks_;
  std::int64_t allocated_ = 0;
  std::size_t mismatches_ = 0;
};

// Returns the number of entries after which the moment is. The state after 0 entries is that at
// the beginning of the history.
std::size_t peak_in(Memory memory, const std::vector<MemoryEvent>& trace) {
  std::int64_t most = memory.allocated();
  std::size_t after = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    memory.redo(trace[i], i);
    const bool failed = trace[i].action == MemoryAction::kOom;
    const std::int64_t now = memory.allocated() + (failed ? trace[i].bytes : 0);
    if (now <= most) continue;
    most = now;
    after = i + 1;
  }
  return after;
}

Moment moment_of(const MemorySnapshot& snapshot, std::uint32_t device,
                 const std::vector<MemoryEvent>& trace) {
  Moment moment;
  moment.device = device;
  moment.entries = trace.size();
  Memory memory(snapshot, device);
  for (std::size_t i = trace.size(); i > 0; --i) memory.undo(trace[i - 1]);
  memory.count_allocated();
  const std::size_t after = peak_in(memory, trace);
  for (std::size_t i = 0; i < after; ++i) memory.redo(trace[i], i);
  if (after > 0) {
    const MemoryEvent& last = trace[after - 1];
    moment.entry = after - 1;
    moment.time_us = last.time_us;
    if (last.action == MemoryAction::kOom) {
      moment.failure = {last.bytes, static_cast<std::int64_t>(last.address), last.stack};
    }
  }
  moment.allocated_bytes = memory.allocated();
  moment.mismatches = memory.mismatches();
  memory.describe(moment);
  return moment;
}

}  // namespace

std::vector<Moment> moments_of(const MemorySnapshot& snapshot) {
  std::uint32_t devices = static_cast<std::uint32_t>(snapshot.traces.size());
  for (const MemorySegment& segment : snapshot.segments) {
    devices = std::max(devices, segment.device + 1);
  }
  std::vector<Moment> moments;
  const std::vector<MemoryEvent> none;
  for (std::uint32_t device = 0; device < devices; ++device) {
    const auto& trace = device < snapshot.traces.size() ? snapshot.traces[device] : none;
    Moment moment = moment_of(snapshot, device, trace);
    if (moment.entries == 0 && moment.reserved_bytes == 0) continue;
    moments.push_back(std::move(moment));
  }
  return moments;
}

std::optional<Steps> steps_of(const MemorySnapshot& snapshot, const Moment& moment) {
  constexpr std::string_view kStep = "Optimizer.step#";
  if (!moment.entry) return std::nullopt;
  Steps steps;
  std::int64_t began = 0;  // the end of the last step before the moment
  for (const MemoryMark& mark : snapshot.marks) {
    if (mark.begins || !mark.name.starts_with(kStep)) continue;
    ++steps.all;
    if (mark.time_us > moment.time_us) continue;
    ++steps.before;
    began = std::max(began, mark.time_us);
  }
  if (steps.before == 0) return std::nullopt;
  const std::vector<MemoryEvent>& trace = snapshot.traces[moment.device];
  for (const LiveBlock& block : moment.blocks) {
    if (block.pending || (block.entry && trace[*block.entry].time_us > began)) continue;
    ++steps.old_blocks;
    steps.old_bytes += block.bytes;
  }
  return steps;
}

}  // namespace ferry::peak
