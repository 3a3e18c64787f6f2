// What a search looks at of each run, and which it takes. Runs with errors are never taken, nor
// those that need more memory than keeping everything does, unless there is nothing else: then the
// row says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

struct Cost {
  sim::Time step_ns = 0;
  std::int64_t device_reserved_bytes = 0;
  std::int64_t host_peak_bytes = 0;
  std::int64_t out_bytes = 0;   // to the host
  std::int64_t back_bytes = 0;  // and back
  bool fails = false;  // an error ended a forward or a backward: what it costs says nothing
};

Cost cost_of(const sim::Simulation& simulation);

struct Limits {
  std::int64_t budget_bytes = 0;  // of the device, reserved
  std::int64_t host_bytes = 0;
  std::int64_t keep_bytes = 0;  // that keeping everything reserves
};

inline bool fits(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes <= limits.budget_bytes &&
         cost.host_peak_bytes <= limits.host_bytes;
}
// It costs time, and no memory is won.
inline bool is_useless(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes > limits.keep_bytes;
}

// Of those that fit, the fastest; where none fits, the one that needs the least memory. None of
// them empty.
std::size_t pick_fastest(const std::vector<Cost>& costs, const Limits& limits);

// The least that a step can take in which so many bytes cross the link each way, and which takes
// `compute_ns` where none does.
sim::Time least_ns(sim::Time compute_ns, const Cost& cost, const Link& link);

// Of those that fit and bring back all that they move, the one that needs the least memory and
// takes at most 2 % over the least that it can: where nothing can leave unnoticed, nothing moves.
// Where memory does not allow that, the fastest of them; and where none of them fits, or none
// brings all back, what needs the least memory.
std::size_t pick_full_speed(const std::vector<Cost>& costs, const Limits& limits,
                            sim::Time compute_ns, const Link& link);

}  // namespace ferry::plan
