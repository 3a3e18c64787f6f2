// The span of a copy, which a real device reports when the copy is done: for traces.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "shared/seam/device.h"

namespace ferry::real {

// The time on the host's steady clock.
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
  // Of the bytes on the host: a copy there and the one that brings them back have the same.
  const void* host = nullptr;
};

// May be called on any thread, one call at a time; must not throw, and must not call the device.
using SpanObserver = std::function<void(const Span&)>;

}  // namespace ferry::real
