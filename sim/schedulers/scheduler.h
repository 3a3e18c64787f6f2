// An activation-offload scheduler of the field, re-enacted: a pair of saved-tensor hooks on the
// simulated device, and what its system does around a step.
//
// Runs in the core's place (SimulationOptions::scheduler), under the same checkers. One thread; the
// device and the autograd outlive it, and it outlives the hooks' use. What goes wrong in a hook is
// an exception, and ends the Call or Backward that it happened in, as in Python.
#pragma once

#include <memory>

#include "shared/hooks.h"
#include "sim/tensor.h"

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
