// The costs of each run that a search compares, and its choice. Runs with errors are never taken,
// nor those that need more memory than keeping everything, unless there is nothing else: then the
// row says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// What a budget is compared with: what the allocator reserves, or what is allocated of it, which is
// what would be needed without fragments.
enum class Judged : std::uint8_t { kReserved, kAllocated };

struct Cost {
  sim::Time step_ns = 0;
  std::int64_t device_peak_bytes = 0;      // allocated: it runs in no less
  std::int64_t device_reserved_bytes = 0;  // or allocated, where these are judged
  std::int64_t host_peak_bytes = 0;
  std::int64_t out_bytes = 0;   // copied to the host
  std::int64_t back_bytes = 0;  // copied back
  std::int64_t retries = 0;     // times that the step gave back what was cached
  bool fails = false;           // a failed forward or backward makes the costs meaningless
};

Cost cost_of(const sim::Simulation& simulation, Judged judged = Judged::kReserved);

struct Limits {
  std::int64_t budget_bytes = 0;  // the limit on reserved device memory
  std::int64_t host_bytes = 0;
  std::int64_t keep_bytes = 0;  // reserved when everything is kept
};

// True if the host has not so much to pin: then less memory of the device is of no use.
inline bool pins_too_much(const Cost& cost, const Limits& limits) {
  return cost.host_peak_bytes > limits.host_bytes;
}
inline bool fits(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes <= limits.budget_bytes && !pins_too_much(cost, limits);
}
// True if it costs time and saves no memory.
inline bool is_useless(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes > limits.keep_bytes;
}

inline bool is_answer(const Cost& cost, const Limits& limits) {
  return !cost.fails && fits(cost, limits) && !is_useless(cost, limits);
}

// The fastest of those that fit; if none fits, the one that needs the least of the device's memory,
// of those that the host has the memory for. The list must not be empty.
std::size_t pick_fastest(const std::vector<Cost>& costs, const Limits& limits);

// A lower bound on a step's time: so many bytes cross the link each way, and computing alone takes
// `compute_ns`.
sim::Time least_ns(sim::Time compute_ns, const Cost& cost, const Link& link);

// Of those that fit and bring back all that they move, the one with the least memory that takes at
// most 2 % over its own lower bound: if every move would slow the step, nothing moves. If memory
// forbids that, the fastest of them; if none of them fits, or none brings all back, the one with
// the least memory.
std::size_t pick_full_speed(const std::vector<Cost>& costs, const Limits& limits,
                            sim::Time compute_ns, const Link& link);

}  // namespace ferry::plan
