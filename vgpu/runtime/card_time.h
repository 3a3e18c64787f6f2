// The clock that the runtime was given (clock.h), or none: then nothing here has an effect.
//
// It spares the other parts the question whether there is a clock. A record keeps the clock that it
// was made with (snapshot.h), for the clock may be set when there are records already.
//
// The runtime's lock guards it (runtime.h), and the clock is called under that lock. It does not
// own the clock, which outlives every event and stream. What the clock says of the host's time is
// one time for all threads.
#pragma once

#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

class CardTime {
 public:
  // `answers`: what the host asks is done when it would be by the clock. Otherwise the streams'
  // tempo decides (schedule.h).
  void set(Clock* clock, bool answers) {
    clock_ = clock;
    answers_ = clock != nullptr && answers;
  }
  Clock* clock() const { return clock_; }  // or null
  bool answers() const { return answers_; }

  void issue(StreamId stream, int device, const Cost& cost, const char* name) {
    if (clock_ != nullptr) clock_->issue(stream, device, cost, name);
  }
  void allocated(int device, std::int64_t change) {
    if (clock_ != nullptr) clock_->allocated(device, change);
  }
  void host_waits(StreamId stream, int device) {
    if (clock_ != nullptr) clock_->host_waits(stream, device);
  }

  void host_computes(const KernelCost& cost) {
    if (clock_ != nullptr) clock_->host_computes(cost);
  }

 private:
  Clock* clock_ = nullptr;
  bool answers_ = false;
};

}  // namespace ferry::vgpu
