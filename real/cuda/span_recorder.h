// Measures copies: two timing events around each, which are read when the copy is done. CudaDevice
// has one while an observer is set (CudaDevice::set_observer).
//
//   stream   ── begin ● ── the copy ── end ● ──
//
// Nothing waits for a copy. Whenever the device is called again, spans that have ended are read and
// reported, in order for each stream. `flush` waits for the rest. At the start, an event that the
// host waits for ties the device's clock to the host's steady clock. Later spans are measured from
// the end of an earlier span, because the distance of events is a float of milliseconds.
//
// A span is optional: if one of its events fails, the copy goes on and no span is reported.
// Durations are accurate to half a microsecond (CUDA's figure). Times on the host's clock have an
// error of up to the duration of the first wait. A device whose clock drifts against the host's is
// not modelled.
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

  // Returns null if it failed.
  CudaSnapshotRef mark(const c10::Stream& stream) noexcept;
  // Reports a copy that was enqueued after `begin`. Its times are not known yet.
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
