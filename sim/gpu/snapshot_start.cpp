// Implements snapshot_start.h. Undo begins with the segments at the end of the trace, and undoes
// the entries from the last to the first.
#include "sim/gpu/snapshot_start.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "formats/error.h"
#include "sim/gpu/device_pool_sizes.h"
#include "sim/gpu/possible_sizes.h"

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

  SnapshotStart run(const std::vector<MemoryEvent>& trace, std::size_t from) {
    for (std::size_t i = trace.size(); i-- > from;) {
      entry_ = i;
      at_ = "entry " + std::to_string(i) + " (" + std::string(name(trace[i].action)) + ")";
      if (trace[i].private_pool) refuse(at_, kPrivate);
      if (!is_inner(trace[i].action)) see_refused();
      if (trace[i].action == MemoryAction::kOom) want(trace[i]);
      const bool fresh = i > from && trace[i - 1].action == MemoryAction::kSegmentAlloc &&
                         trace[i - 1].address == trace[i].address;
      undo(trace[i], fresh, i > from);
    }
    // An allocation at the very start may have begun before the trace: what was free then is not
    // known.
    if (expandable_bytes_ != 0) {
      refuse("the trace", "begins with expandable segments: expected one from their start");
    }
    SnapshotStart start;
    settle(start);
    for (auto& [address, known] : segments_) start.segments.push_back(filled(known));
    return start;
  }

 private:
  static constexpr const char* kPrivate =
      "a private pool, of CUDA graphs or a MemPool, is not simulated";

  struct Known {
    MemorySegment segment;
    std::map<std::uint64_t, MemoryBlock> active;
    std::uint64_t end() const {
      return segment.address + static_cast<std::uint64_t>(segment.bytes);
    }
  };
  struct Unsure {
    Known* known;
    PossibleSizes sizes;
    bool never_split;
    std::size_t freed;  // the entry that frees it
  };

  [[noreturn]] void refuse(const std::string& where, const std::string& why) const {
    throw InputError(file_, 0, where + ": " + why);
  }

  // Returns null if the address is in an expandable segment.
  Known* find(std::uint64_t address) {
    auto found = segments_.upper_bound(address);
    if (found == segments_.begin()) return nullptr;
    Known& known = (--found)->second;
    return address - found->first < static_cast<std::uint64_t>(known.segment.bytes) ? &known
                                                                                    : nullptr;
  }

  // Returns the bytes from an address to the next block in use.
  static std::int64_t room(const Known& known, std::uint64_t from) {
    const auto next = known.active.upper_bound(from);
    return static_cast<std::int64_t>((next == known.active.end() ? known.end() : next->first) -
                                     from);
  }

  // Notes a request that found nothing free. It counts where all that was done for it is undone.
  void want(const MemoryEvent& event) {
    const std::int64_t bytes = rounded_bytes(event.bytes, conf_);
    // If some blocks are never split, a request may pass over a block that is large enough.
    if (bytes > kSmallSize && !conf_.max_split_bytes) wanted_ = {bytes, event.stream};
  }
  void see_refused() {
    if (!wanted_) return;
    const auto [bytes, stream] = *std::exchange(wanted_, std::nullopt);
    for (auto& [address, unsure] : unsure_) {
      if (unsure.known->segment.stream != stream) continue;
      unsure.sizes.see_request(room(*unsure.known, address), bytes, std::nullopt, false);
    }
  }
  // A request got the free space at its address. So no other free space was a better fit.
  void see_given(const Known& known, const MemoryEvent& event) {
    const std::int64_t bytes = rounded_bytes(event.bytes, conf_);
    if (bytes <= kSmallSize) return;
    const std::int64_t given = room(known, event.address);
    for (auto& [address, unsure] : unsure_) {
      if (unsure.known->segment.stream != event.stream) continue;
      unsure.sizes.see_request(room(*unsure.known, address), bytes, given, address < event.address);
    }
  }
  void see_end_of_block_before(Known& known, std::uint64_t end) {
    const auto next = known.active.lower_bound(end);
    if (next == known.active.begin()) return;
    auto& [address, block] = *std::prev(next);
    if (unsure_.erase(address) != 0) block.bytes = static_cast<std::int64_t>(end - address);
  }
  void see_room_before(const Known& known, std::uint64_t at) {
    const auto next = known.active.lower_bound(at);
    if (next == known.active.begin()) return;
    const std::uint64_t address = std::prev(next)->first;
    const auto unsure = unsure_.find(address);
    if (unsure != unsure_.end()) unsure->second.sizes.see_room(room(known, address));
  }

  void settle(SnapshotStart& start) {
    for (const auto& [address, unsure] : unsure_) {
      MemoryBlock& block = unsure.known->active.at(address);
      // A block that is never split is usually its whole segment.
      const auto bytes = unsure.never_split ? unsure.sizes.largest() : unsure.sizes.smallest();
      block.bytes = bytes.value_or(block.bytes);
      if (unsure.sizes.is_settled()) continue;
      start.unsure_ends[address + static_cast<std::uint64_t>(block.bytes)] = unsure.freed;
    }
  }

  // `whole`: the trace has the beginning of the call that the entry belongs to.
  void undo(const MemoryEvent& event, bool fresh, bool whole) {
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
    if (event.action != MemoryAction::kAlloc) return;
    undo_alloc(*known, event, block);
    if (!known->segment.small && whole && !fresh) see_given(*known, event);
    if (whole && fresh) want(event);
  }

  void undo_alloc(Known& known, const MemoryEvent& event,
                  std::map<std::uint64_t, MemoryBlock>::iterator block) {
    known.active.erase(block);
    unsure_.erase(event.address);
    if (!known.segment.small) see_end_of_block_before(known, event.address);
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
    const std::int64_t most = room(known, event.address);
    const std::int64_t bytes = rounded_bytes(event.bytes, conf_);
    if (bytes > most || known.active.contains(event.address)) {
      refuse(at_, "its block is in use afterwards");
    }
    known.active[event.address] = {event.address, bytes, event.bytes, BlockState::kPendingFree};
    if (known.segment.small) return;
    see_room_before(known, event.address);
    const bool whole = conf_.max_split_bytes && bytes >= *conf_.max_split_bytes;
    const std::int64_t rest = whole ? conf_.non_split_rounding_bytes() - kMinBlock : kSmallSize;
    PossibleSizes sizes(bytes, std::min(most, bytes + rest));
    sizes.see_room(most);
    unsure_.insert_or_assign(event.address, Unsure{&known, std::move(sizes), whole, entry_});
  }

  // Returns the segment with free blocks between those in use.
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
  std::size_t entry_ = 0;
  std::map<std::uint64_t, Known> segments_;
  std::map<std::uint64_t, Unsure> unsure_;                        // blocks in use, by address
  std::optional<std::pair<std::int64_t, std::uint64_t>> wanted_;  // bytes and stream
  std::int64_t expandable_bytes_ = 0;
};

}  // namespace

SnapshotStart start_of(const MemorySnapshot& snapshot, std::size_t device, std::size_t from,
                       const std::string& file) {
  return Undo(snapshot, device, file).run(snapshot.traces.at(device), from);
}

bool is_inner(MemoryAction action) {
  return action == MemoryAction::kFreeCompleted || action == MemoryAction::kSegmentAlloc ||
         action == MemoryAction::kSegmentFree || action == MemoryAction::kSegmentMap ||
         action == MemoryAction::kSegmentUnmap;
}

}  // namespace ferry::sim
