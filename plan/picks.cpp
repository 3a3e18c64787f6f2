#include "plan/picks.h"

#include <algorithm>
#include <tuple>

namespace ferry::plan {
namespace {

__extension__ typedef __int128 Wide;

// Returns the time to copy so many bytes, rounded up.
sim::Time crossing_ns(std::int64_t bytes, std::int64_t bytes_per_us) {
  return static_cast<sim::Time>((Wide{bytes} * 1000 + bytes_per_us - 1) / bytes_per_us);
}

// Returns the index of the first element with the least `key`.
template <class Key>
std::size_t least(const std::vector<Cost>& costs, Key key) {
  std::size_t pick = 0;
  for (std::size_t i = 1; i < costs.size(); ++i) {
    if (key(costs[i]) < key(costs[pick])) pick = i;
  }
  return pick;
}

}  // namespace

Cost cost_of(const sim::Simulation& simulation, Judged judged) {
  return {.step_ns = simulation.step_ns,
          .device_peak_bytes = simulation.device_peak_bytes,
          .device_reserved_bytes = judged == Judged::kAllocated ? simulation.device_peak_bytes
                                                                : simulation.device_reserved_bytes,
          .host_peak_bytes = simulation.host_peak_bytes,
          .out_bytes = simulation.d2h_bytes,
          .back_bytes = simulation.h2d_bytes,
          .retries = simulation.last_alloc_retries,
          .fails = !simulation.errors.empty()};
}

std::size_t pick_fastest(const std::vector<Cost>& costs, const Limits& limits) {
  return least(costs, [&](const Cost& cost) {
    const bool in = fits(cost, limits);
    return std::tuple(cost.fails, is_useless(cost, limits), !in, pins_too_much(cost, limits),
                      in ? cost.step_ns : cost.device_reserved_bytes,
                      in ? cost.device_reserved_bytes : cost.step_ns);
  });
}

sim::Time least_ns(sim::Time compute_ns, const Cost& cost, const Link& link) {
  return std::max({compute_ns, crossing_ns(cost.out_bytes, link.d2h_alone),
                   crossing_ns(cost.back_bytes, link.h2d_alone)});
}

std::size_t pick_full_speed(const std::vector<Cost>& costs, const Limits& limits,
                            sim::Time compute_ns, const Link& link) {
  return least(costs, [&](const Cost& cost) {
    const sim::Time bound = least_ns(compute_ns, cost, link);
    const bool in = fits(cost, limits);
    const bool slow = !in || cost.step_ns - bound > bound / 50;
    const bool by_time = in && slow;
    return std::tuple(cost.fails, is_useless(cost, limits), cost.out_bytes != cost.back_bytes, !in,
                      pins_too_much(cost, limits), slow,
                      by_time ? cost.step_ns : cost.device_reserved_bytes,
                      by_time ? cost.device_reserved_bytes : cost.step_ns);
  });
}

}  // namespace ferry::plan
