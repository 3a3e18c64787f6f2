#include "sim/gpu/snapshot_replay.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "formats/error.h"
#include "sim/gpu/device_pool.h"
#include "sim/gpu/device_pool_sizes.h"
#include "sim/gpu/snapshot_start.h"

namespace ferry::sim {
namespace {

std::string hex(std::uint64_t address) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(address));
  return text.data();
}

std::string in_words(const MemoryEvent& event) {
  std::string text =
      std::string(name(event.action)) + " of " + std::to_string(event.bytes) + " bytes";
  if (event.action != MemoryAction::kOom) text += " at " + hex(event.address);
  return text + " on stream " + std::to_string(event.stream);
}

std::string in_words(const MemorySegment& segment) {
  std::string text = "a segment of " + std::to_string(segment.bytes) + " bytes at " +
                     hex(segment.address) + " with";
  for (const MemoryBlock& block : segment.blocks) {
    text += " " + std::to_string(block.bytes) + " " + std::string(name(block.state));
  }
  return text;
}

// When a freed block's work is done on a stream of its own, as the trace says.
class Completions final : public PoolEvents {
 public:
  PoolToken record(StreamId) override { return PoolToken{next_++}; }
  bool done(PoolToken token) override { return done_.contains(token); }
  void wait(PoolToken) override {}
  void drop(PoolToken token) override { done_.erase(token); }
  PoolToken latest() const { return PoolToken{next_ - 1}; }
  void finish(PoolToken token) { done_.insert(token); }

 private:
  std::uint64_t next_ = 1;
  std::set<PoolToken> done_;
};

class Replay final : public PoolTrace {
 public:
  Replay(const MemorySnapshot& snapshot, std::size_t device, const std::string& file)
      : snapshot_(snapshot), device_(device), file_(file), pool_(0, options(), completions_) {
    const std::vector<MemoryEvent>& trace = snapshot.traces[device];
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const MemoryAction action = trace[i].action;
      if (action == MemoryAction::kSnapshot || action == MemoryAction::kUserDefined) continue;
      entries_.push_back(i);
      numbers_[trace[i].stream];
    }
    const std::vector<MemorySegment> start = segments_at_start(snapshot, device, file);
    for (const MemorySegment& segment : start) numbers_[segment.stream];
    for (auto& [stream, number] : numbers_) {
      number = StreamId{uses_++};
      streams_.push_back(stream);
    }
    for (const MemorySegment& segment : start) adopt(segment);
    pool_.trace_to(this);
  }

  void on(const PoolEntry& entry) override {
    simulated_.push_back(entry);
    if (entry.action == MemoryAction::kFreeCompleted) pending_.erase(entry.address);
  }

  // `told` is called with how many of its entries are done.
  void run(SnapshotReplay& result, const std::function<void(std::size_t)>& told) {
    while (at_ < entries_.size() && !difference_) {
      step(result);
      told(at_);
    }
    if (!difference_) compare_segments(result);
    result.entries += static_cast<std::int64_t>(at_);
    result.difference = difference_;
  }

 private:
  DevicePoolOptions options() {
    DevicePoolOptions options;
    options.conf = snapshot_.conf;
    options.has_room = [this](std::int64_t) {
      return is_next(MemoryAction::kSegmentAlloc) || is_next(MemoryAction::kSegmentMap);
    };
    options.place = [this] { return place(); };
    return options;
  }

  // Where the device put the next segment of the request's stream and pool.
  std::uint64_t place() const {
    const bool small = rounded_bytes(request_->bytes, snapshot_.conf) <= kSmallSize;
    for (std::size_t i = at_ + simulated_.size(); i < entries_.size(); ++i) {
      const MemoryEvent& next = event(i);
      if (next.stream != request_->stream || (next.bytes == kSmallSegment) != small) continue;
      if (next.action == MemoryAction::kSegmentAlloc || next.action == MemoryAction::kSegmentMap) {
        return next.address;
      }
    }
    return 0;
  }

  const MemoryEvent& event(std::size_t i) const { return snapshot_.traces[device_][entries_[i]]; }
  // What the allocator is to do next.
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

  // It is in use on a stream of its own, so that nothing else waits for it.
  void free_later(Block* block) {
    const std::uint64_t address = block->address();
    live_.erase(address);
    pool_.record_use(block, StreamId{uses_++});
    pool_.free(block);
    pending_[address] = completions_.latest();
  }

  void step(SnapshotReplay& result) {
    if (event(at_).action == MemoryAction::kFreeRequested) return free();
    // What goes before an allocation belongs to it; what goes before anything else is
    // empty_cache's.
    std::size_t end = at_;
    std::size_t given_back = at_;  // the place behind what was given back last
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
    }  // for one that failed, all were waited for
    ++result.allocations;
    allocate(request, stream);
    compare(end + 1);
  }

  // Whether what was given back before a request was empty_cache's: for the request alone nothing
  // would have been, or something else first; or nothing was got for it.
  bool was_emptied(const MemoryEvent& request, StreamId stream, std::size_t given_back,
                   std::size_t end) const {
    if (pool_.would_reuse(request.bytes, stream)) return true;
    if (request.action == MemoryAction::kAlloc && given_back == end) return true;
    const Block* first = pool_.would_release(request.bytes, stream);
    for (std::size_t i = at_; first != nullptr && i < given_back; ++i) {
      if (event(i).action == MemoryAction::kSegmentFree)
        return event(i).address != first->address();
    }
    return false;
  }

  // Up to where frees were found done by a query, and not waited for: before a block went that is
  // never split, nothing is waited for.
  std::size_t queried(const MemoryEvent& request, StreamId stream) const {
    std::size_t end = at_;
    if (pool_.would_release(request.bytes, stream) == nullptr) return end;
    while (event(end).action == MemoryAction::kFreeCompleted) ++end;
    return end;
  }

  static bool is_inner(MemoryAction action) {
    return action == MemoryAction::kFreeCompleted || action == MemoryAction::kSegmentAlloc ||
           action == MemoryAction::kSegmentFree || action == MemoryAction::kSegmentMap ||
           action == MemoryAction::kSegmentUnmap;
  }

  void allocate(const MemoryEvent& request, StreamId stream) {
    request_ = &request;
    try {
      Block* block = pool_.allocate(request.bytes, stream);
      if (block != nullptr) live_[block->address()] = block;
    } catch (const OutOfMemory&) {  // which the trace has, or has not
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

  // Where all that is in use is waited for next, it may have been free before: it comes to the
  // same. Blocks that are never split go before that.
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
    pool_.empty_cache();
    compare(end);
  }

  // The frees that the trace completes up to there are done by now.
  void complete(std::size_t end) {
    for (std::size_t i = at_; i < end; ++i) {
      if (event(i).action != MemoryAction::kFreeCompleted) continue;
      const auto found = pending_.find(event(i).address);
      if (found != pending_.end()) completions_.finish(found->second);
    }
  }

  // Holds what the allocator did against the entries up to `end`, and goes there.
  void compare(std::size_t end) {
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
      difference_ = ReplayDifference{device_, entries_[at], told(real), told(simulated)};
      return;
    }
    at_ = end;
  }

  MemoryEvent event_of(const PoolEntry& entry) const {
    MemoryEvent event{.action = entry.action, .address = entry.address, .bytes = entry.bytes};
    event.stream = streams_[static_cast<std::size_t>(entry.stream)];
    return event;
  }

  static bool same(const MemoryEvent& real, const MemoryEvent& simulated) {
    return real.action == simulated.action && real.bytes == simulated.bytes &&
           real.stream == simulated.stream &&
           (real.action == MemoryAction::kOom || real.address == simulated.address);
  }

  // Frees that complete together are in an order of the streams' own (sim/gpu/pool_trace.h).
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
      difference_ = ReplayDifference{device_, std::nullopt, told(real), told(simulated)};
      return;
    }
    result.segments += static_cast<std::int64_t>(real.size());
  }

  // Inactive blocks keep the size that was requested of them before.
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
  std::vector<std::size_t> entries_;           // of the trace: those of the allocator
  std::size_t at_ = 0;                         // among them
  const MemoryEvent* request_ = nullptr;       // that is being replayed
  std::map<std::uint64_t, StreamId> numbers_;  // of streams
  std::vector<std::uint64_t> streams_;         // by number
  std::uint32_t uses_ = 0;                     // numbers of streams that were given
  Completions completions_;
  DevicePool pool_;
  std::map<std::uint64_t, Block*> live_;
  std::map<std::uint64_t, PoolToken> pending_;
  std::vector<PoolEntry> simulated_;
  std::optional<ReplayDifference> difference_;
};

}  // namespace

SnapshotReplay replay_snapshot(const MemorySnapshot& snapshot, const std::string& file,
                               const ReplayProgress& progress) {
  SnapshotReplay result;
  std::size_t all = 0;
  for (const std::vector<MemoryEvent>& trace : snapshot.traces) all += trace.size();
  for (std::size_t device = 0; device < snapshot.traces.size() && !result.difference; ++device) {
    const auto before = static_cast<std::size_t>(result.entries);
    Replay(snapshot, device, file).run(result, [&](std::size_t done) {
      if (progress) progress(before + done, all);
    });
  }
  return result;
}

}  // namespace ferry::sim
