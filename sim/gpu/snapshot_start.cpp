#include "sim/gpu/snapshot_start.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "formats/error.h"
#include "sim/gpu/device_pool_sizes.h"

namespace ferry::sim {
namespace {

class Undo {
 public:
  Undo(const MemorySnapshot& snapshot, std::size_t device, const std::string& file)
      : conf_(snapshot.conf), file_(file) {
    for (const MemorySegment& segment : snapshot.segments) {
      if (segment.device != device) continue;
      if (segment.private_pool) refuse("the segments", kPrivate);
      expandable_bytes_ += segment.expandable ? segment.bytes : 0;
      if (!segment.expandable) segments_[segment.address] = {segment, {}};
    }
    for (auto& [address, known] : segments_) {
      for (const MemoryBlock& block : std::exchange(known.segment.blocks, {})) {
        if (block.state != BlockState::kInactive) known.active[block.address] = block;
      }
    }
  }

  std::vector<MemorySegment> run(const std::vector<MemoryEvent>& trace) {
    for (std::size_t i = trace.size(); i-- > 0;) {
      at_ = "entry " + std::to_string(i) + " (" + std::string(name(trace[i].action)) + ")";
      if (trace[i].private_pool) refuse(at_, kPrivate);
      undo(trace[i]);
    }
    if (expandable_bytes_ != 0) {
      refuse("the trace", "begins with expandable segments: expected one from their start");
    }
    std::vector<MemorySegment> all;
    for (auto& [address, known] : segments_) all.push_back(filled(known));
    return all;
  }

 private:
  static constexpr const char* kPrivate =
      "a private pool, of CUDA graphs or a MemPool, is not simulated";

  struct Known {
    MemorySegment segment;
    std::map<std::uint64_t, MemoryBlock> active;
  };

  [[noreturn]] void refuse(const std::string& where, const std::string& why) const {
    throw InputError(file_, 0, where + ": " + why);
  }

  // None: it is in an expandable segment.
  Known* find(std::uint64_t address) {
    auto found = segments_.upper_bound(address);
    if (found == segments_.begin()) return nullptr;
    Known& known = (--found)->second;
    return address - found->first < static_cast<std::uint64_t>(known.segment.bytes) ? &known
                                                                                    : nullptr;
  }

  void undo(const MemoryEvent& event) {
    switch (event.action) {
      case MemoryAction::kSegmentMap:
        expandable_bytes_ -= event.bytes;
        return;
      case MemoryAction::kSegmentUnmap:
        expandable_bytes_ += event.bytes;
        return;
      case MemoryAction::kSegmentAlloc:
        return undo_segment(event);
      case MemoryAction::kSegmentFree:
        if (find(event.address) != nullptr) refuse(at_, "its segment is there afterwards");
        segments_[event.address] = {{.address = event.address,
                                     .bytes = event.bytes,
                                     .stream = event.stream,
                                     .small = event.bytes == kSmallSegment,
                                     .blocks = {}},
                                    {}};
        return;
      default:
        break;
    }
    Known* known = find(event.address);
    if (known == nullptr) return;
    if (event.action == MemoryAction::kFreeCompleted) return undo_free(*known, event);
    const auto block = known->active.find(event.address);
    if (event.action == MemoryAction::kFreeRequested || event.action == MemoryAction::kAlloc) {
      if (block == known->active.end()) refuse(at_, "its block is not there afterwards");
    }
    if (event.action == MemoryAction::kFreeRequested) block->second.state = BlockState::kAllocated;
    if (event.action == MemoryAction::kAlloc) known->active.erase(block);
  }

  void undo_segment(const MemoryEvent& event) {
    const auto found = segments_.find(event.address);
    if (found == segments_.end() || found->second.segment.bytes != event.bytes) {
      refuse(at_, "its segment is not there afterwards");
    }
    if (!found->second.active.empty()) refuse(at_, "its segment is in use before");
    segments_.erase(found);
  }

  void undo_free(Known& known, const MemoryEvent& event) {
    const MemorySegment& segment = known.segment;
    const auto after = known.active.lower_bound(event.address);
    const std::uint64_t end = after == known.active.end()
                                  ? segment.address + static_cast<std::uint64_t>(segment.bytes)
                                  : after->first;
    const auto room = static_cast<std::int64_t>(end - event.address);
    std::int64_t bytes = rounded_bytes(event.bytes, conf_);
    const bool whole = conf_.max_split_bytes && bytes >= *conf_.max_split_bytes;
    if (!segment.small && (whole || room - bytes <= kSmallSize)) bytes = room;
    if (bytes > room) refuse(at_, "its block is in use afterwards");
    known.active[event.address] = {event.address, bytes, event.bytes, BlockState::kPendingFree};
  }

  // With free blocks between those in use.
  static MemorySegment filled(const Known& known) {
    MemorySegment segment = known.segment;
    std::uint64_t at = segment.address;
    const auto fill_to = [&](std::uint64_t end) {
      if (at < end) {
        segment.blocks.push_back({at, static_cast<std::int64_t>(end - at), 0, {}});
      }
      at = end;
    };
    for (const auto& [address, block] : known.active) {
      fill_to(address);
      segment.blocks.push_back(block);
      at += static_cast<std::uint64_t>(block.bytes);
    }
    fill_to(segment.address + static_cast<std::uint64_t>(segment.bytes));
    return segment;
  }

  const AllocConf& conf_;
  const std::string& file_;
  std::string at_;
  std::map<std::uint64_t, Known> segments_;
  std::int64_t expandable_bytes_ = 0;
};

}  // namespace

std::vector<MemorySegment> segments_at_start(const MemorySnapshot& snapshot, std::size_t device,
                                             const std::string& file) {
  return Undo(snapshot, device, file).run(snapshot.traces.at(device));
}

}  // namespace ferry::sim
