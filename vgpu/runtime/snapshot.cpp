#include "vgpu/runtime/snapshot.h"

#include "vgpu/runtime/streams.h"

namespace ferry::vgpu {

Snapshot::Snapshot(Stream& stream, Clock* clock) : stream_(&stream), clock_(clock) {
  if (clock_ != nullptr) mark_ = clock_->record(stream.id, stream.device);
}

Snapshot::~Snapshot() {
  if (clock_ != nullptr) clock_->release(mark_);
}

void Snapshot::complete(std::int64_t now_ns) {
  is_done_ = true;
  done_ns_ = now_ns;
}

void Snapshot::hold_up(const Stream& waiting) const {
  if (clock_ != nullptr) clock_->wait(waiting.id, waiting.device, mark_);
}

void Snapshot::host_waits() const {
  if (clock_ != nullptr) clock_->host_waits(mark_);
}

Clock::Answer Snapshot::host_asks() const { return clock_->host_asks(mark_); }

std::int64_t Snapshot::run_to_end() const {
  return clock_ != nullptr ? clock_->run_to_end(mark_) : done_ns_;
}

}  // namespace ferry::vgpu
