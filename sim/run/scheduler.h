// Another scheduler in the core's place: a pair of saved-tensor hooks on the simulated device, and
// what its program does around a step (SimulationOptions::scheduler). It runs under the same
// checkers as the core.
//
// One thread; the device and the autograd outlive it, and it outlives the hooks' use. What goes
// wrong in a hook is an exception, and ends the Call or Backward that it happened in, as in Python.
#pragma once

#include <memory>

#include "shared/seam/hooks.h"
#include "sim/gpu/tensor.h"

namespace ferry::sim {

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::shared_ptr<Hooks<Tensor>> hooks() = 0;
  // A parameter or buffer.
  virtual void exempt(const Tensor&) {}
  // Before each forward of the main code: what entering the context, or a new micro-batch, does.
  virtual void begin_forward() {}
  // After the step: what leaving the context does, and entering it for the next step.
  virtual void finish() {}
  // Whether it holds nothing. Asked after finish().
  virtual bool empty() const = 0;
};

}  // namespace ferry::sim
