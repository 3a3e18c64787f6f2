#include "vgpu/runtime/log.h"

#include "vgpu/runtime/thread.h"

namespace ferry::vgpu {

void Log::tell(const StreamOp& op) {
  end_free();
  hear(op);
}

void Log::tell_sync(StreamId stream) {
  StreamOp op;
  op.kind = StreamOpKind::kStreamSync;
  op.stream = stream;
  tell(op);
}

void Log::forget(Range range) {
  if (listener_ != nullptr) listener_->forget(range);
}

void Log::destroy_event(EventId event) {
  if (listener_ != nullptr) listener_->destroy_event(event);
}

void Log::begin_free(const StreamOp& free, std::string_view library) {
  end_free();
  pending_free_.begin(free, library);
}

void Log::tell_free(const StreamOp& free) {
  pending_free_.end_of(free.range, [this](const StreamOp& op) { hear(op); });
  if (pending_free_.is_told(free.range)) {
    pending_free_.forget_told(free.range);
  } else {
    tell(free);
  }
}

void Log::begin_pinned_free(const StreamOp& free) {
  returned_pinned_[free.range.address] = {std::this_thread::get_id(), free};
  begin_free(free, "libtorch_cuda");
}

bool Log::began_pinned_free(std::uint64_t address) const {
  const auto found = returned_pinned_.find(address);
  return found != returned_pinned_.end() && found->second.by == std::this_thread::get_id();
}

void Log::end_pinned_free(std::uint64_t address) {
  const auto found = returned_pinned_.find(address);
  if (found == returned_pinned_.end()) return;
  const StreamOp free = found->second.free;
  returned_pinned_.erase(found);
  tell_free(free);
}

void Log::end_free() {
  pending_free_.end([this](const StreamOp& op) { hear(op); });
}

void Log::hear(StreamOp op) {
  if (listener_ == nullptr) return;
  if (op.step == Step::kUser) op.step = thread().step;
  listener_->on(op);
}

}  // namespace ferry::vgpu
