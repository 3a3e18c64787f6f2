// Measures a step, and its part before the optimizer: forward and backward.
//
// On the CPU a call that returned is done, so the host's clock is used. On an accelerator two
// events of LibTorch's stand on the current stream, which was idle before the first; they are read
// when the step is over, so nothing waits for the backward alone. Copies that nobody waits for are
// in neither time.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>

namespace ferry::real::train {

class StepClock {
 public:
  // Begins a step: the device must be idle.
  explicit StepClock(c10::Device device);
  void backward_issued();

  // Call it when the step is over, on the device as well.
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
