// Limits how far the host runs ahead of a device. CUDA queues about a thousand launches, then the
// next one blocks (an observed figure that is not documented). A mark every 128 launches enforces
// this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "sim/gpu/engine.h"

namespace ferry::sim {

class LaunchQueue {
 public:
  // Call this after a launch, at time `now`. The mark follows `stream`, on which the host computes.
  // Returns the time at which the host may go on, which may be long past.
  Time launched(Engine& engine, StreamId stream, Time now) {
    if (++launches_ % kMarkEvery != 0) return 0;
    marks_.push_back(engine.record(stream, now));
    if (marks_.size() <= kMarksAhead) return 0;
    const Time free = engine.run_until(marks_.front());
    engine.release(marks_.front());
    marks_.pop_front();
    return free;
  }

 private:
  static constexpr std::int64_t kMarkEvery = 128;
  static constexpr std::size_t kMarksAhead = 8;

  std::int64_t launches_ = 0;
  std::deque<Signal> marks_;
};

}  // namespace ferry::sim
