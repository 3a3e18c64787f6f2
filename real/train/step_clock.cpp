#include "real/train/step_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include "real/tensors/span.h"

namespace ferry::real::train {

StepClock::StepClock(c10::Device device) : device_(device), begin_ns_(now_ns()) {
  if (!device_.is_cpu()) begin_ = mark();
}

c10::Event StepClock::mark() const {
  c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  return event;
}

void StepClock::backward_issued() {
  if (begin_) {
    backward_ = mark();
  } else {
    backward_ns_ = now_ns();
  }
}

double StepClock::seconds() const { return static_cast<double>(now_ns() - begin_ns_) * 1e-9; }

double StepClock::forward_backward_seconds() const {
  if (begin_) return begin_->elapsedTime(*backward_) * 1e-3;
  return static_cast<double>(backward_ns_ - begin_ns_) * 1e-9;
}

}  // namespace ferry::real::train
