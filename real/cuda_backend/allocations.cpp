#include "real/cuda_backend/allocations.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include "real/api/stream_log.h"

namespace ferry::real {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Called under the allocator's lock. Once the free of a block is requested, other work may use the
// block, but not before the streams of record_stream have finished.
void note(const allocator::TraceEntry& entry) {
  using Action = allocator::TraceEntry::Action;
  if (entry.action_ != Action::ALLOC && entry.action_ != Action::FREE_REQUESTED) return;
  const std::shared_ptr<StreamLog> log = StreamLog::active();
  if (!log) return;
  if (entry.action_ == Action::FREE_REQUESTED) return log->freed(entry.addr_);
  log->allocated(entry.addr_, static_cast<std::int64_t>(entry.size_),
                 log->stream(cuda_stream_key(entry.stream_)));
}

}  // namespace

void log_allocations() {
  static const bool listening = [] {
    try {
      allocator::attachAllocatorTraceTracker(note);
    } catch (const c10::Error&) {
      return false;
    }
    return true;
  }();
  static_cast<void>(listening);
}

}  // namespace ferry::real
