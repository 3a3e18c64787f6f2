// Whether a training runs on a device of some capacity: by running it there.
//
// What the pool reserves where memory is unlimited is more than what it needs: at a capacity below
// that it gives whole free segments back and goes on, at a price in time. So a candidate fits where
// its run at that capacity has no error. Below what it allocates it cannot run. Between the two the
// least capacity is found by bisection, to 2 MiB or 1/256 of it; that a larger device runs whatever
// a smaller one does is assumed, as PyTorch's users do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plan/picks.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// Runs a whole training on a device of that capacity; 0: unlimited. It need not be checked.
using RunAt = std::function<sim::Simulation(std::int64_t device_bytes)>;

struct Verdict {
  sim::Simulation unlimited;
  std::int64_t least_bytes = 0;   // the least capacity that it was seen to run at; 0: it fails
  bool fits = false;              // device and host
  bool by_retries = false;        // it fits, and would reserve more if it could
  sim::Time step_ns = 0;          // where it fits, at the budget's capacity
  std::int64_t judged_bytes = 0;  // what it reserves with unlimited memory, or allocates
  std::string refusal = {};       // why it does not fit, in PyTorch's words

  // Whether it is known not to run in so much: the least may be a little less than what was seen.
  bool needs_more_than(std::int64_t device_bytes) const;
  // The capacity that its figures are of; 0: unlimited.
  std::int64_t device_bytes(const Limits& limits) const {
    return by_retries ? limits.budget_bytes : 0;
  }
};

// Where allocated bytes are judged, it needs what it allocates, and nothing is run at a capacity.
Verdict judge(const RunAt& run, const Limits& limits, Judged judged = Judged::kReserved);
// The same of one that has been judged for other limits: what it needs is known.
Verdict judge_again(Verdict verdict, const RunAt& run, const Limits& limits, Judged judged);

}  // namespace ferry::plan
