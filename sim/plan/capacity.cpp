#include "sim/plan/capacity.h"

#include <algorithm>

#include "scenarios/units.h"

namespace ferry::plan {
namespace {

constexpr std::int64_t kSegmentStep = 2 << 20;  // segments are multiples of it
constexpr std::int64_t kParts = 256;

// Between what it allocates, less which it cannot run with, and what it reserves.
std::int64_t least_capacity(const RunAt& run, const sim::Simulation& unlimited) {
  std::int64_t fails = unlimited.device_peak_bytes - 1;
  std::int64_t runs = unlimited.device_reserved_bytes;
  while (runs - fails > std::max(kSegmentStep, runs / kParts)) {
    const std::int64_t middle = fails + (runs - fails) / 2;
    (run(middle).errors.empty() ? runs : fails) = middle;
  }
  return runs;
}

}  // namespace

Judged judge(const RunAt& run, const Limits& limits) {
  Judged judged{.unlimited = run(0)};
  const sim::Simulation& free = judged.unlimited;
  if (!free.errors.empty()) {
    judged.refusal = free.errors.front().message;
    return judged;
  }
  judged.step_ns = free.step_ns;
  judged.least_bytes = least_capacity(run, free);
  if (free.host_peak_bytes > limits.host_bytes) {
    judged.refusal = "it pins " + format_bytes(free.host_peak_bytes) + " of the host's " +
                     format_bytes(limits.host_bytes);
    return judged;
  }
  if (free.device_reserved_bytes <= limits.budget_bytes) {
    judged.fits = true;
    return judged;
  }
  const sim::Simulation at = run(limits.budget_bytes);
  judged.fits = judged.by_retries = at.errors.empty();
  if (judged.fits) {
    judged.step_ns = at.step_ns;
    judged.least_bytes = std::min(judged.least_bytes, limits.budget_bytes);
  } else {
    judged.refusal = at.errors.front().message;
  }
  return judged;
}

}  // namespace ferry::plan
