// A scheduler in place of the core: a pair of saved-tensor hooks on the simulated device, and what
// its program does around a step (SimulationOptions::scheduler). It runs under the same checkers as
// the core.
//
// It is used by one thread. The device and the autograd outlive it, and it outlives the use of its
// hooks. An error in a hook is an exception, and ends the Call or Backward in which it happened, as
// in Python.
#pragma once

#include <cstdint>
#include <memory>

#include "shared/seam/hooks.h"
#include "shared/seam/statistics.h"
#include "sim/gpu/tensor.h"

namespace ferry::sim {

// Bytes of saved tensors that are on the device under a scheduler that moves them, and why.
struct Resident {
  std::int64_t waiting_peak_bytes = 0;  // until their copies to the host are done
  std::int64_t kept_peak_bytes = 0;     // left there for good, though large enough to move
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual std::shared_ptr<Hooks<Tensor>> hooks() = 0;
  // Called for each parameter and buffer.
  virtual void exempt(const Tensor&) {}
  // Called before each forward of the main code, like entering the context or a new micro-batch.
  virtual void begin_forward() {}
  // Called after the step: leaves the context, and enters it for the next step.
  virtual void finish() {}
  // True if it holds nothing. Called after finish().
  virtual bool empty() const = 0;
  // Returns figures about the last forward and its backward.
  virtual Resident resident() const { return {}; }
  // Returns figures about all steps so far. Only Ferry's offloader counts them.
  virtual OffloadStatistics statistics() const { return {}; }
};

}  // namespace ferry::sim
