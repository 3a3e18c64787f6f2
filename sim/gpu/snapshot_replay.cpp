// Implements snapshot_replay.h. A Replay makes the calls of one device's trace on a DevicePool, and
// compares what the pool does with the entries of the trace, call by call.
#include "sim/gpu/snapshot_replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "formats/error.h"
#include "sim/gpu/device_pool.h"
#include "sim/gpu/device_pool_sizes.h"
#include "sim/gpu/reserved_places.h"
#include "sim/gpu/segment_order.h"
#include "sim/gpu/snapshot_start.h"
#include "sim/gpu/snapshot_words.h"
#include "sim/gpu/told_events.h"

namespace ferry::sim {
namespace {

class Replay final : public PoolTrace {
 public:
  // Replays the trace from entry `from` on. The device's memory matters only for expandable
  // segments, because it limits their addresses; 0: they have enough.
  Replay(const MemorySnapshot& snapshot, std::size_t device, std::size_t from,
         const SnapshotStart& start, std::int64_t total_bytes, const std::string& file)
      : snapshot_(snapshot),
        device_(device),
        file_(file),
        total_bytes_(total_bytes),
        ages_known_(start.segments.empty()),
        pool_(0, options(), completions_) {
    const std::vector<MemoryEvent>& trace = snapshot.traces[device];
    for (std::size_t i = from; i < trace.size(); ++i) {
      const MemoryAction action = trace[i].action;
      if (action == MemoryAction::kSnapshot || action == MemoryAction::kUserDefined) continue;
      entries_.push_back(i);
      numbers_[trace[i].stream];
    }
    for (const MemorySegment& segment : start.segments) numbers_[segment.stream];
    for (auto& [stream, number] : numbers_) {
      number = StreamId{uses_++};
      streams_.push_back(stream);
    }
    for (const MemorySegment& segment : start.segments) adopt(segment);
    pool_.trace_to(this);
  }

  void on(const PoolEntry& entry) override {
    simulated_.push_back(entry);
    if (entry.action == MemoryAction::kFreeCompleted) pending_.erase(entry.address);
  }

  // Calls `told` after each call, with the number of entries done.
  void run(SnapshotReplay& result, const std::function<void(std::size_t)>& told) {
    for (; at_ < entries_.size() && !difference_; ++calls_) {
      step(result);
      told(at_);
    }
    if (!difference_) compare_segments(result);
    result.entries += static_cast<std::int64_t>(at_);
    result.difference = difference_;
  }

  // Numbers of addresses that its segments would have needed for requests that may have found too
  // few.
  const std::set<std::int64_t>& needs() const { return places_.needs(); }

  // Returns where the first call ends, if that call is the one that differs.
  std::optional<std::size_t> behind_first() const {
    if (!difference_ || calls_ != 1) return std::nullopt;
    return last_end_ < entries_.size() ? entries_[last_end_] : snapshot_.traces[device_].size();
  }

 private:
  DevicePoolOptions options() {
    DevicePoolOptions options;
    options.conf = snapshot_.conf;
    options.conf.per_process_memory_fraction = 1;  // its effects are in the trace
    options.total_bytes = total_bytes_;
    options.has_room = [this](std::int64_t) {
      return is_next(MemoryAction::kSegmentAlloc) || is_next(MemoryAction::kSegmentMap);
    };
    options.place = [this] {
      const std::uint64_t address = place();
      if (address != 0) places_.add(request_->stream, is_small(*request_), address);
      return address;
    };
    return options;
  }

  // Returns where the device put the next segment of the request's stream and pool; 0: nowhere.
  std::uint64_t place() const {
    const bool small = is_small(*request_);
    for (std::size_t i = at_ + simulated_.size(); i < entries_.size(); ++i) {
      const MemoryEvent& next = event(i);
      if (next.stream != request_->stream || (next.bytes == kSmallSegment) != small) continue;
      const bool maps = next.action == MemoryAction::kSegmentMap;
      if (maps && places_.contains(next.stream, small, next.address)) continue;
      if (maps || next.action == MemoryAction::kSegmentAlloc) return next.address;
    }
    return 0;
  }

  bool is_small(const MemoryEvent& request) const {
    return rounded_bytes(request.bytes, snapshot_.conf) <= kSmallSize;
  }

  const MemoryEvent& event(std::size_t i) const { return snapshot_.traces[device_][entries_[i]]; }
  // True if this is the next action in the trace.
  bool is_next(MemoryAction action) const {
    const std::size_t next = at_ + simulated_.size();
    return next < entries_.size() && event(next).action == action;
  }

  void adopt(MemorySegment segment) {
    segment.stream = static_cast<std::uint64_t>(numbers_.at(segment.stream));
    std::vector<MemoryBlock> blocks = segment.blocks;
    std::erase_if(blocks, [](const auto& block) { return block.state == BlockState::kInactive; });
    const std::vector<Block*> active = pool_.adopt(segment);
    for (std::size_t i = 0; i < active.size(); ++i) {
      live_[active[i]->address()] = active[i];
      if (blocks[i].state == BlockState::kPendingFree) free_later(active[i]);
    }
  }

  // The block is in use on a stream of its own, so nothing else waits for it.
  void free_later(Block* block) {
    const std::uint64_t address = block->address();
    live_.erase(address);
    pool_.record_use(block, StreamId{uses_++});
    pool_.free(block);
    pending_[address] = completions_.latest();
  }

  void step(SnapshotReplay& result) {
    if (event(at_).action == MemoryAction::kFreeRequested) return free();
    // Entries before an allocation belong to it. Entries before anything else belong to
    // empty_cache.
    std::size_t end = at_;
    std::size_t given_back = at_;  // behind the last entry that gives memory back
    while (end < entries_.size() && is_inner(event(end).action)) {
      const MemoryAction action = event(end).action;
      ++end;
      if (action == MemoryAction::kSegmentFree || action == MemoryAction::kSegmentUnmap) {
        given_back = end;
      }
    }
    const bool allocates = end < entries_.size() && (event(end).action == MemoryAction::kAlloc ||
                                                     event(end).action == MemoryAction::kOom);
    if (!allocates) return empty_cache(end);
    const MemoryEvent& request = event(end);
    const StreamId stream = numbers_.at(request.stream);
    if (given_back > at_ && was_emptied(request, stream, given_back, end)) {
      return empty_cache(given_back);
    }
    if (given_back > at_) {
      complete(queried(request, stream));
    } else if (request.action == MemoryAction::kAlloc) {
      complete(end);
    }  // a request that failed has waited for all of them
    ++result.allocations;
    if (snapshot_.conf.expandable_segments && (end > at_ || request.action == MemoryAction::kOom)) {
      places_.note_request(request.stream, is_small(request),
                           rounded_bytes(request.bytes, snapshot_.conf),
                           static_cast<std::uint64_t>(stream), pool_.snapshot());
    }
    allocate(request, stream);
    compare(end + 1);
  }

  // True if empty_cache gave back the memory before a request: for the request alone, nothing would
  // have been given back, or something else first; or the request got no new memory.
  bool was_emptied(const MemoryEvent& request, StreamId stream, std::size_t given_back,
                   std::size_t end) const {
    if (pool_.would_reuse(request.bytes, stream)) return true;
    if (request.action == MemoryAction::kAlloc && given_back == end) return true;
    const Block* first = pool_.would_release(request.bytes, stream);
    for (std::size_t i = at_; first != nullptr && i < given_back; ++i) {
      const MemoryEvent& freed = event(i);
      if (freed.action != MemoryAction::kSegmentFree) continue;
      if (ages_known_) return freed.address != first->address();
      return freed.stream != request.stream || freed.bytes != first->bytes();
    }
    return false;
  }

  // Returns the end of the frees that a query found done. Before a block that is never split is
  // given back, nothing is waited for, so there the frees come from a query.
  std::size_t queried(const MemoryEvent& request, StreamId stream) const {
    std::size_t end = at_;
    if (pool_.would_release(request.bytes, stream) == nullptr) return end;
    while (event(end).action == MemoryAction::kFreeCompleted) ++end;
    return end;
  }

  void allocate(const MemoryEvent& request, StreamId stream) {
    request_ = &request;
    try {
      Block* block = pool_.allocate(request.bytes, stream);
      if (block != nullptr) live_[block->address()] = block;
    } catch (const OutOfMemory&) {  // compare() sees if the trace has it
    } catch (const LimitReached& limit) {
      throw InputError(file_, 0, limit.what());
    }
  }

  void free() {
    const MemoryEvent& freed = event(at_);
    const auto found = live_.find(freed.address);
    if (found == live_.end()) {
      throw InputError(file_, 0,
                       "entry " + std::to_string(entries_[at_]) + " of device " +
                           std::to_string(device_) + ": frees what is not allocated");
    }
    Block* block = found->second;
    if (!completes_at_once()) {
      free_later(block);
      return compare(at_ + 1);
    }
    live_.erase(found);
    pool_.free(block);
    compare(at_ + 2);
  }

  // If all blocks in use are waited for next, this block may have been free before that; the result
  // is the same. But blocks that are never split are given back before that wait.
  bool completes_at_once() const {
    std::size_t next = at_ + 1;
    if (next == entries_.size() || event(next).action != MemoryAction::kFreeCompleted ||
        event(next).address != event(at_).address) {
      return false;
    }
    while (next < entries_.size() && event(next).action == MemoryAction::kFreeCompleted) ++next;
    if (next == entries_.size()) return true;
    const MemoryAction action = event(next).action;
    const bool gives_back =
        action == MemoryAction::kSegmentFree || action == MemoryAction::kSegmentUnmap;
    return action != MemoryAction::kOom && (!gives_back || snapshot_.conf.max_split_bytes);
  }

  void empty_cache(std::size_t end) {
    request_ = nullptr;
    pool_.empty_cache();
    compare(end);
  }

  // Finishes the pending frees that the trace completes before entry `end`.
  void complete(std::size_t end) {
    for (std::size_t i = at_; i < end; ++i) {
      if (event(i).action != MemoryAction::kFreeCompleted) continue;
      const auto found = pending_.find(event(i).address);
      if (found != pending_.end()) completions_.finish(found->second);
    }
  }

  // Compares what the allocator did with the entries up to `end`, and continues there.
  void compare(std::size_t end) {
    last_end_ = end;
    std::vector<MemoryEvent> real;
    for (std::size_t i = at_; i < end; ++i) real.push_back(event(i));
    std::vector<MemoryEvent> simulated;
    for (const PoolEntry& entry : simulated_) simulated.push_back(event_of(entry));
    simulated_.clear();
    order_completions(real);
    order_completions(simulated);
    for (std::size_t i = 0; i < std::max(real.size(), simulated.size()); ++i) {
      if (i < real.size() && i < simulated.size() && same(real[i], simulated[i])) continue;
      const auto told = [i](const std::vector<MemoryEvent>& events) {
        return i < events.size() ? in_words(events[i]) : std::string("nothing more");
      };
      const std::size_t at = std::min(at_ + i, entries_.size() - 1);
      difference_ = ReplayDifference{device_, entries_[at], told(real), told(simulated), {}, {}};
      if (i < simulated.size() && simulated[i].action == MemoryAction::kAlloc) {
        difference_->simulated_alloc = simulated[i].address;
      }
      if (i < real.size() && i < simulated.size() && same_elsewhere(real[i], simulated[i])) {
        difference_->older_and_newer = {real[i].address, simulated[i].address};
        if (goes_newest_first(real[i])) {
          difference_->older_and_newer = {simulated[i].address, real[i].address};
        }
      }
      return;
    }
    at_ = end;
  }

  // True if it is one of several blocks that are never split, given back for a larger request.
  bool goes_newest_first(const MemoryEvent& event) const {
    const auto& most = snapshot_.conf.max_split_bytes;
    return event.action == MemoryAction::kSegmentFree && request_ != nullptr && most &&
           event.bytes >= *most && event.bytes < rounded_bytes(request_->bytes, snapshot_.conf);
  }

  MemoryEvent event_of(const PoolEntry& entry) const {
    MemoryEvent event{.action = entry.action, .address = entry.address, .bytes = entry.bytes};
    event.stream = streams_[static_cast<std::size_t>(entry.stream)];
    return event;
  }

  static bool same_elsewhere(const MemoryEvent& real, const MemoryEvent& simulated) {
    return real.action == simulated.action && real.bytes == simulated.bytes &&
           real.stream == simulated.stream;
  }
  static bool same(const MemoryEvent& real, const MemoryEvent& simulated) {
    return same_elsewhere(real, simulated) &&
           (real.action == MemoryAction::kOom || real.address == simulated.address);
  }

  // PyTorch may have another order of frees that complete together (sim/gpu/pool_trace.h).
  static void order_completions(std::vector<MemoryEvent>& events) {
    const auto completes = [](const MemoryEvent& event) {
      return event.action == MemoryAction::kFreeCompleted;
    };
    for (auto from = events.begin(); from != events.end();) {
      from = std::find_if(from, events.end(), completes);
      const auto to = std::find_if_not(from, events.end(), completes);
      std::sort(from, to, [](const auto& a, const auto& b) { return a.address < b.address; });
      from = to;
    }
  }

  void compare_segments(SnapshotReplay& result) {
    std::vector<MemorySegment> real;
    for (const MemorySegment& segment : snapshot_.segments) {
      if (segment.device == device_) real.push_back(segment);
    }
    const std::vector<MemorySegment> simulated = pool_.snapshot();
    for (std::size_t i = 0; i < std::max(real.size(), simulated.size()); ++i) {
      if (i < real.size() && i < simulated.size() && same(real[i], simulated[i])) continue;
      const auto told = [i](const std::vector<MemorySegment>& segments) {
        return i < segments.size() ? in_words(segments[i]) : std::string("nothing more");
      };
      difference_ = ReplayDifference{device_, std::nullopt, told(real), told(simulated), {}, {}};
      return;
    }
    result.segments += static_cast<std::int64_t>(real.size());
  }

  // Inactive blocks keep an earlier requested size, which is not compared.
  bool same(const MemorySegment& real, const MemorySegment& simulated) const {
    const auto found = numbers_.find(real.stream);
    const bool same_blocks = std::equal(
        real.blocks.begin(), real.blocks.end(), simulated.blocks.begin(), simulated.blocks.end(),
        [](const MemoryBlock& a, const MemoryBlock& b) {
          return a.address == b.address && a.bytes == b.bytes && a.state == b.state &&
                 (a.state == BlockState::kInactive || a.requested_bytes == b.requested_bytes);
        });
    return same_blocks && real.address == simulated.address && real.small == simulated.small &&
           real.expandable == simulated.expandable && found != numbers_.end() &&
           static_cast<std::uint64_t>(found->second) == simulated.stream;
  }

  const MemorySnapshot& snapshot_;
  std::size_t device_;
  const std::string& file_;
  std::int64_t total_bytes_;
  bool ages_known_;  // ages of all segments: the trace begins without any
  ReservedPlaces places_{total_bytes_ + total_bytes_ / 8};
  std::vector<std::size_t> entries_;           // the allocator's entries, as indices of the trace
  std::size_t at_ = 0;                         // an index of entries_
  std::size_t calls_ = 0;                      // number of calls that were replayed
  std::size_t last_end_ = 0;                   // the end of the latest call's entries
  const MemoryEvent* request_ = nullptr;       // the one that is replayed now; null: empty_cache
  std::map<std::uint64_t, StreamId> numbers_;  // of the trace's streams
  std::vector<std::uint64_t> streams_;         // the trace's streams, by number
  std::uint32_t uses_ = 0;                     // stream numbers in use
  ToldEvents completions_;
  DevicePool pool_;
  std::map<std::uint64_t, Block*> live_;
  std::map<std::uint64_t, PoolToken> pending_;
  std::vector<PoolEntry> simulated_;
  std::optional<ReplayDifference> difference_;
};

// Returns the first call of a trace that begins in the middle. The rest of an earlier call is
// skipped.
std::size_t first_call(const std::vector<MemoryEvent>& trace) {
  const auto found = std::find_if(trace.begin(), trace.end(), [](const MemoryEvent& event) {
    return !is_inner(event.action) && event.action != MemoryAction::kSnapshot &&
           event.action != MemoryAction::kUserDefined;
  });
  return static_cast<std::size_t>(found - trace.begin());
}

// Returns a device memory with which a segment just fails to have so many addresses.
std::int64_t memory_below(std::int64_t needs, const AllocConf& conf) {
  const std::int64_t page = conf.large_segment_bytes;
  const std::int64_t addresses = (needs - 1) / page * page;
  return addresses / 9 * 8;
}

// Replays a trace from its beginning, with ever fewer addresses for expandable segments, until
// there is no difference. If there always is one, the result is the one with enough addresses.
void replay_expandable(const MemorySnapshot& snapshot, std::size_t device, const std::string& file,
                       const std::function<void(std::size_t)>& told, SnapshotReplay& result) {
  constexpr int kTries = 100;
  const SnapshotReplay before = result;
  std::int64_t total = 0;
  for (int i = 0; i < kTries; ++i) {
    SnapshotReplay tried = before;
    Replay replay(snapshot, device, 0, {}, total, file);
    replay.run(tried, told);
    if (i == 0 || !tried.difference) result = tried;
    if (!tried.difference) return;
    // The next smaller number that makes a difference to some request.
    std::int64_t next = 0;
    for (const std::int64_t needs : replay.needs()) {
      const std::int64_t below = memory_below(needs, snapshot.conf);
      if (below > next && (total == 0 || below < total)) next = below;
    }
    if (next == 0) return;
    total = next;
  }
}

// Replays a trace that begins with segments. Tries the orders in which these may have been made.
void replay_from_the_middle(const MemorySnapshot& snapshot, std::size_t device,
                            const std::string& file, const std::function<void(std::size_t)>& told,
                            SnapshotReplay& result) {
  constexpr int kTries = 100;
  const std::vector<MemoryEvent>& trace = snapshot.traces[device];
  const SnapshotReplay before = result;
  std::size_t from = first_call(trace);
  SnapshotStart start = start_of(snapshot, device, from, file);
  SegmentOrder order(start.segments, trace);
  bool may_learn = true;
  for (int i = 0; i < kTries && may_learn; ++i) {
    result = before;
    start.segments = order.segments();
    Replay replay(snapshot, device, from, start, /*total_bytes=*/0, file);
    replay.run(result, told);
    if (!result.difference) return;
    if (const auto behind = replay.behind_first(); i == 0 && behind) {
      // That call may have begun before the trace, when less was free.
      from = *behind;
      start = start_of(snapshot, device, from, file);
      order = SegmentOrder(start.segments, trace);
      continue;
    }
    const auto& ages = result.difference->older_and_newer;
    may_learn = ages && order.learn(ages->first, ages->second);
  }
  const auto& address = result.difference->simulated_alloc;
  const auto unsure = address ? start.unsure_ends.find(*address) : start.unsure_ends.end();
  // With max_split_size it is not clear at which end of equal blocks the release began.
  const bool order_unknown = may_learn || snapshot.conf.equal_blocks == EqualBlocks::kOldestBlock ||
                             (result.difference->older_and_newer && snapshot.conf.max_split_bytes);
  result.start_unknown = order_unknown || (unsure != start.unsure_ends.end() &&
                                           *result.difference->entry <= unsure->second);
}

// Replays one device, and adds to the counts.
void replay_device(const MemorySnapshot& snapshot, std::size_t device, const std::string& file,
                   const std::function<void(std::size_t)>& told, SnapshotReplay& result) {
  const SnapshotStart start = start_of(snapshot, device, 0, file);
  if (!start.segments.empty()) {
    return replay_from_the_middle(snapshot, device, file, told, result);
  }
  if (snapshot.conf.expandable_segments) {
    return replay_expandable(snapshot, device, file, told, result);
  }
  Replay replay(snapshot, device, 0, start, /*total_bytes=*/0, file);
  replay.run(result, told);
}

}  // namespace

SnapshotReplay replay_snapshot(const MemorySnapshot& snapshot, const std::string& file,
                               const ReplayProgress& progress) {
  SnapshotReplay result;
  std::size_t all = 0;
  for (const std::vector<MemoryEvent>& trace : snapshot.traces) all += trace.size();
  for (std::size_t device = 0; device < snapshot.traces.size() && !result.difference; ++device) {
    const auto before = static_cast<std::size_t>(result.entries);
    const auto told = [&](std::size_t done) {
      if (progress) progress(before + done, all);
    };
    replay_device(snapshot, device, file, told, result);
  }
  return result;
}

}  // namespace ferry::sim
