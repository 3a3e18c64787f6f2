// The runtime's clock, which is optional (clock.h). Without a clock every call here does nothing.
//
// It spares the other parts of the runtime the check whether there is a clock. A record keeps the
// clock that it was made with (snapshot.h), because the clock may be set after records were made.
//
// The runtime's lock guards this class (runtime.h), and the clock is called under that lock. The
// class does not own the clock, which must outlive every event and stream. All host threads share
// one host time.
#pragma once

#include "vgpu/runtime/clock.h"

namespace ferry::vgpu {

class CardTime {
 public:
  // If `answers` is true, the clock answers the host's queries: work is done when the card would be
  // done with it. Otherwise the streams' tempo decides (schedule.h).
  void set(Clock* clock, bool answers) {
    clock_ = clock;
    answers_ = clock != nullptr && answers;
  }
  Clock* clock() const { return clock_; }  // or null
  bool answers() const { return answers_; }

  void issue(StreamId stream, int device, const Cost& cost, const char* name) {
    if (clock_ != nullptr) clock_->issue(stream, device, cost, name);
  }
  // All work issued between the two costs the host one launch.
  void begin_graph(StreamId stream, int device) {
    if (clock_ != nullptr) clock_->begin_graph(stream, device);
  }
  void end_graph() {
    if (clock_ != nullptr) clock_->end_graph();
  }
  void allocated(int device, std::int64_t change) {
    if (clock_ != nullptr) clock_->allocated(device, change);
  }
  void host_waits(StreamId stream, int device) {
    if (clock_ != nullptr) clock_->host_waits(stream, device);
  }

  std::int64_t duration(const Cost& cost) const {  // in nanoseconds
    return clock_ != nullptr ? clock_->duration(cost) : 0;
  }
  void host_computes(const KernelCost& cost) {
    if (clock_ != nullptr) clock_->host_computes(cost);
  }

 private:
  Clock* clock_ = nullptr;
  bool answers_ = false;
};

}  // namespace ferry::vgpu
