// The time span of a copy. A real device reports it when the copy is done. Traces
// (real/api/trace.h) and `ferry calibrate` (real/calibrate/probe_of.h) collect spans.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "shared/seam/device.h"

namespace ferry::real {

// Returns the time on the host's steady clock, in nanoseconds.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Times are those of now_ns.
struct Span {
  Step step = Step::kUser;
  Lane lane = Lane::kDeviceToHost;
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  // The address on the host. A copy to the host and the copy back of its bytes have the same
  // address.
  const void* host = nullptr;
};

// It may be called on any thread, one call at a time. It must not throw, and must not call the
// device.
using SpanObserver = std::function<void(const Span&)>;

}  // namespace ferry::real
