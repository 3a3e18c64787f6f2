#include "real/cuda/span_recorder.h"

#include <c10/cuda/CUDAException.h>

#include <chrono>
#include <utility>

namespace ferry::real {
namespace {

// After this time the base is moved, so that a float is exact to a quarter of a microsecond.
constexpr std::int64_t kRebaseNs = 4'000'000'000;

std::int64_t between_ns(const CudaSnapshot& begin, const CudaSnapshot& end) {
  float elapsed_ms = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&elapsed_ms, begin.event(), end.event()));
  return static_cast<std::int64_t>(static_cast<double>(elapsed_ms) * 1e6);
}

}  // namespace

SpanRecorder::SpanRecorder(c10::DeviceIndex device, const c10::Stream& stream,
                           SpanObserver observer)
    : events_(std::make_shared<CudaEvents>(device, /*timed=*/true)),
      observer_(std::move(observer)),
      base_(events_->record(stream)) {
  base_->synchronize();
  base_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                 std::chrono::steady_clock::now().time_since_epoch())
                 .count();
}

CudaSnapshotRef SpanRecorder::mark(const c10::Stream& stream) noexcept {
  try {
    return events_->record(stream);
  } catch (...) {
    return nullptr;
  }
}

void SpanRecorder::copied(const Span& copy, CudaSnapshotRef begin,
                          const c10::Stream& stream) noexcept {
  CudaSnapshotRef end = begin ? mark(stream) : nullptr;
  if (end) {
    const std::lock_guard lock(mutex_);
    try {
      pending_.push_back({copy, std::move(begin), std::move(end)});
    } catch (...) {
    }
  }
  tell_done();
}

void SpanRecorder::tell_done() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (!it->end->done()) {
        ++it;
        continue;
      }
      const Pending done = std::move(*it);
      it = pending_.erase(it);
      tell(done);
    }
  } catch (...) {
    pending_.clear();  // CUDA reports an error
  }
}

void SpanRecorder::flush() {
  const std::lock_guard lock(mutex_);
  while (!pending_.empty()) {
    const Pending first = std::move(pending_.front());
    pending_.pop_front();
    try {
      first.end->synchronize();
      tell(first);
    } catch (...) {
      pending_.clear();
      throw;
    }
  }
}

void SpanRecorder::tell(const Pending& pending) {
  Span span = pending.span;
  span.begin_ns = base_ns_ + between_ns(*base_, *pending.begin);
  span.end_ns = span.begin_ns + between_ns(*pending.begin, *pending.end);
  observer_(span);
  if (span.end_ns - base_ns_ > kRebaseNs) {
    base_ = pending.end;
    base_ns_ = span.end_ns;
  }
}

}  // namespace ferry::real
