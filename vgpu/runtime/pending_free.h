// A block that one of LibTorch's caching allocators got back while streams were said to use it: by
// `Tensor.record_stream`, or, of page-locked memory, by a copy.
//
// The allocator records an event on each of these streams, asks the events whenever it looks for
// memory, and has the block free once all are done. To the program these questions mean nothing: on
// a GPU they may be asked later, or never. So they order nothing but the block's next life; the log
// has the uses and the free instead, in the words of PyTorch's pool (formats/TRACE.md, record_use).
//
// Source of what it models: `free` and `insert_events` of c10/cuda/CUDACachingAllocator.cpp, whose
// trace names the block just before the events are recorded; `free` of
// ATen/core/CachingHostAllocator.h. Used under the runtime's lock.
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
  // What records from there (a return address) records for a program, wherever that is.
  void learn(const void* caller) { of_programs_.insert(caller); }

  // The calling thread returned the block; what `library` records next is for its sake. (A program
  // that frees a tensor may record an event of its own next, but from elsewhere.)
  void begin(const StreamOp& free, std::string_view library);

  // The calling thread has returned a block, and records from there (a return address) for its
  // sake.
  bool is_for_block(const void* caller) const;
  // It does so on this stream, which was in use of the block.
  void add_use(StreamId stream);

  // The calling thread does something else. If its block was in use, this says so, and then that it
  // is free; if not, the allocator says that itself.
  template <class Tell>
  void end(Tell&& tell) {
    end(pending_.find(std::this_thread::get_id()), tell);
  }

  // The same of this block, which any thread may find free.
  template <class Tell>
  void end_of(Range block, Tell&& tell) {
    const auto same = [&](const auto& other) { return other.second.free.range == block; };
    end(std::find_if(pending_.begin(), pending_.end(), same), tell);
  }
  // The block was said to be free, before the allocator says so.
  bool is_told(Range block) const { return told_.contains(block.address); }
  // The allocator has it free as well.
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
  std::set<std::uint64_t> told_;  // and not free yet
  std::set<const void*> of_programs_;
};

}  // namespace ferry::vgpu
