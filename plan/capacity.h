// Decides if a candidate's training runs on a device of a given capacity, by simulating it there.
//
// With unlimited memory, PyTorch's allocator reserves more than the training needs. At a smaller
// capacity it returns free allocator segments and goes on, which costs time. So a candidate fits if
// its run at the budget's capacity has no error. It cannot run in less than it allocates. Between
// that and what it reserves, the smallest capacity is found by bisection, to 2 MiB or 1/256 of it.
// The bisection assumes that a training which runs in some memory also runs in more.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plan/picks.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// Runs a whole training on a device of that capacity; 0: unlimited. The run needs no hazard check.
using RunAt = std::function<sim::Simulation(std::int64_t device_bytes)>;

struct Verdict {
  sim::Simulation unlimited;
  std::int64_t least_bytes = 0;   // the smallest capacity at which it ran; 0: it fails
  bool fits = false;              // it fits the device and the host
  bool by_retries = false;        // it fits, but only because the allocator frees its cache
  sim::Time step_ns = 0;          // if it fits: at the budget's capacity
  std::int64_t judged_bytes = 0;  // with unlimited memory: the bytes that Judged names
  std::string refusal = {};       // why it does not fit, in PyTorch's words

  // True if it is known not to run in this memory. The true minimum may be slightly below
  // least_bytes.
  bool needs_more_than(std::int64_t device_bytes) const;
  // The capacity at which its figures were simulated; 0: unlimited.
  std::int64_t device_bytes(const Limits& limits) const {
    return by_retries ? limits.budget_bytes : 0;
  }
};

// Judges a candidate. With Judged::kAllocated it needs what it allocates, so nothing is run at a
// capacity.
Verdict judge(const RunAt& run, const Limits& limits, Judged judged = Judged::kReserved);
// Judges a candidate again for other limits. What it needs is known, so the bisection is left out.
Verdict judge_again(Verdict verdict, const RunAt& run, const Limits& limits, Judged judged);

}  // namespace ferry::plan
