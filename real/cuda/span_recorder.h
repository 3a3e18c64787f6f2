// Times the copies: two timing events around each, read when they are done.
//
//   stream   ── begin ● ── the copy ── end ● ──
//
// Nothing waits: whenever the device is called again, spans whose end is done are read and told,
// those of a stream in order; `flush` waits for the rest. The device's clock is tied to the host's
// steady clock once, at the start, by an event that the host waited for; later spans are measured
// from the end of one told before, as an event's distance is a float of milliseconds.
//
// A span is optional: if one of its events fails, the copy goes on and no span is reported.
// Accuracy: half a microsecond for durations (CUDA's figure); on the host's clock, the duration of
// the first wait. Not modelled: a device whose clock drifts against the host's.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "real/cuda/events.h"
#include "real/tensors/span.h"

namespace ferry::real {

class SpanRecorder {
 public:
  // Waits for `stream`. Throws CUDA's error.
  SpanRecorder(c10::DeviceIndex device, const c10::Stream& stream, SpanObserver observer);

  // None if it failed.
  CudaSnapshotRef mark(const c10::Stream& stream) noexcept;
  // A copy, whose times are not known yet, was enqueued since `begin`.
  void copied(const Span& copy, CudaSnapshotRef begin, const c10::Stream& stream) noexcept;

  void tell_done() noexcept;
  // Throws CUDA's error; the remaining spans are then dropped.
  void flush();

 private:
  struct Pending {
    Span span;
    CudaSnapshotRef begin;
    CudaSnapshotRef end;
  };
  void tell(const Pending& pending);

  const std::shared_ptr<CudaEvents> events_;
  const SpanObserver observer_;
  std::mutex mutex_;
  CudaSnapshotRef base_;
  std::int64_t base_ns_ = 0;
  std::deque<Pending> pending_;
};

}  // namespace ferry::real
