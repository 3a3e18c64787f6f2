// Tracks a block that one of LibTorch's caching allocators got back while streams may still use it,
// because of `Tensor.record_stream` or, for page-locked memory, of a copy.
//
// The allocator records an event on each of these streams, queries the events when it looks for
// memory, and frees the block once all are done. These queries mean nothing to the program: on a
// GPU they may happen later, or never. So they order only the next use of the block. Instead, the
// log has the block's uses and its free, as PyTorch's pool has them (record_use in
// formats/STREAM_LOG.md).
//
// The class follows `free` and `insert_events` of c10/cuda/CUDACachingAllocator.cpp, whose trace
// names the block just before the events are recorded, and `free` of
// ATen/core/CachingHostAllocator.h. It is used under the runtime's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "formats/stream_op.h"

namespace ferry::vgpu {

class PendingFree {
 public:
  // Events recorded from this return address are the program's, in whatever library the address is.
  void learn(const void* caller) { of_programs_.insert(caller); }

  // The calling thread returned the block. Events that `library` records next are for the block. (A
  // program that frees a tensor may record an event of its own next, but from elsewhere.)
  void begin(const StreamOp& free, std::string_view library);

  // Returns whether the calling thread has returned a block and, from this return address, records
  // an event for it.
  bool is_for_block(const void* caller) const;
  // Notes that the block is in use on this stream.
  void add_use(StreamId stream);

  // The calling thread does something else. If its block was in use, this reports the uses and then
  // the free. If not, the allocator reports the free itself.
  template <class Tell>
  void end(Tell&& tell) {
    end(pending_.find(std::this_thread::get_id()), tell);
  }

  // The same for this block, which any thread may find to be free.
  template <class Tell>
  void end_of(Range block, Tell&& tell) {
    const auto same = [&](const auto& other) { return other.second.free.range == block; };
    end(std::find_if(pending_.begin(), pending_.end(), same), tell);
  }
  // Returns whether the free was reported here before the allocator reported it.
  bool is_told(Range block) const { return told_.contains(block.address); }
  // The allocator has now reported the free as well.
  void forget_told(Range block) { told_.erase(block.address); }

 private:
  struct Pending {
    StreamOp free;
    std::string_view library;
    std::vector<StreamId> uses;
  };
  using PendingOfThreads = std::map<std::thread::id, Pending>;

  template <class Tell>
  void end(PendingOfThreads::iterator found, Tell&& tell) {
    if (found == pending_.end()) return;
    const Pending ended = std::move(found->second);
    pending_.erase(found);
    if (ended.uses.empty()) return;
    for (const StreamId stream : ended.uses) {
      StreamOp use = ended.free;
      use.kind = StreamOpKind::kRecordUse;
      use.stream = stream;
      tell(use);
    }
    tell(ended.free);
    told_.insert(ended.free.range.address);
  }

  PendingOfThreads pending_;
  std::set<std::uint64_t> told_;  // reported as free here, but not yet by the allocator
  std::set<const void*> of_programs_;
};

}  // namespace ferry::vgpu
