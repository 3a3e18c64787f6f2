// Measures the time of a step, and of forward and backward in it.
//
// On the CPU a call is done when it returns, so the host's clock is used. On an accelerator two
// LibTorch events are recorded on the current stream, which is idle before the first. They are read
// when the step is over, so nothing waits for backward alone. Copies that nothing waits for are in
// neither time.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>

namespace ferry::real::train {

class StepClock {
 public:
  // Begins a step. The device must be idle.
  explicit StepClock(c10::Device device);
  void backward_issued();

  // Call these when the step is over, on the device too.
  double seconds() const;
  double forward_backward_seconds() const;

 private:
  c10::Event mark() const;

  c10::Device device_;
  std::int64_t begin_ns_;
  std::int64_t backward_ns_ = 0;
  std::optional<c10::Event> begin_;
  std::optional<c10::Event> backward_;
};

}  // namespace ferry::real::train
