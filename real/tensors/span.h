// What a copy did, told by a real device when it is done: for traces.
#pragma once

#include <cstdint>
#include <functional>

#include "shared/device.h"

namespace ferry::real {

// Nanoseconds of the host's steady clock.
struct Span {
  Step step = Step::kUser;
  Lane lane = Lane::kDeviceToHost;
  std::int64_t bytes = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// May be called on any thread, one call at a time; must not throw, and must not call the device.
using SpanObserver = std::function<void(const Span&)>;

}  // namespace ferry::real
