// The costs of simulated candidates, and the two rules that pick one of them: the fastest that
// fits, and the least memory at about full speed. A candidate whose run has errors, or that needs
// more memory than keeping everything, is picked only if there is no other; the row then says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenarios/hardware.h"
#include "sim/run/simulation.h"

namespace ferry::plan {

// The bytes that are compared with the budget: the reserved bytes, or the allocated bytes, which an
// allocator without fragments would need.
enum class Judged : std::uint8_t { kReserved, kAllocated };

struct Cost {
  sim::Time step_ns = 0;
  std::int64_t device_peak_bytes = 0;      // allocated: it cannot run in less
  std::int64_t device_reserved_bytes = 0;  // reserved; or allocated, with Judged::kAllocated
  std::int64_t host_peak_bytes = 0;
  std::int64_t out_bytes = 0;   // copied to the host
  std::int64_t back_bytes = 0;  // copied back
  std::int64_t retries = 0;     // how often the step freed the allocator's cache
  bool fails = false;           // a forward or backward failed: the costs have no meaning
};

Cost cost_of(const sim::Simulation& simulation, Judged judged = Judged::kReserved);

struct Limits {
  std::int64_t budget_bytes = 0;  // the limit on reserved device memory
  std::int64_t host_bytes = 0;
  std::int64_t keep_bytes = 0;  // reserved if everything is kept
};

// True if it pins more memory than the host has. Then it cannot run, whatever the device.
inline bool pins_too_much(const Cost& cost, const Limits& limits) {
  return cost.host_peak_bytes > limits.host_bytes;
}
inline bool fits(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes <= limits.budget_bytes && !pins_too_much(cost, limits);
}
// True if it reserves more than keeping everything: it costs time and saves no memory.
inline bool is_useless(const Cost& cost, const Limits& limits) {
  return cost.device_reserved_bytes > limits.keep_bytes;
}

inline bool is_answer(const Cost& cost, const Limits& limits) {
  return !cost.fails && fits(cost, limits) && !is_useless(cost, limits);
}

// Picks the fastest one that fits. If none fits, picks the least device memory of those that fit
// the host. The list must not be empty.
std::size_t pick_fastest(const std::vector<Cost>& costs, const Limits& limits);

// Returns a lower bound on the step time: the longest of computing, copying out and copying back.
// Computing alone takes `compute_ns`.
sim::Time least_ns(sim::Time compute_ns, const Cost& cost, const Link& link);

// Considers those that fit and copy back all that they move. Picks the least memory of those that
// take at most 2 % more than their own lower bound (least_ns); if every move would slow the step,
// this moves nothing. If there is none, picks the fastest of those considered. If none is
// considered, picks the least memory of those that copy back all that they move, if there are any.
std::size_t pick_full_speed(const std::vector<Cost>& costs, const Limits& limits,
                            sim::Time compute_ns, const Link& link);

}  // namespace ferry::plan
