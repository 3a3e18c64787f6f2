#include "plan/capacity.h"

#include <algorithm>
#include <utility>

#include "scenarios/units.h"

namespace ferry::plan {
namespace {

// Returns the precision, in bytes, of the bisection for a minimum of this size.
std::int64_t known_to(std::int64_t least_bytes) {
  // Allocator segments are multiples of this many bytes. Larger: a coarser minimum, with fewer
  // runs.
  constexpr std::int64_t kSegmentStep = 2 << 20;
  return std::max(kSegmentStep, least_bytes / 256);
}

// Finds the smallest capacity by bisection. It is at least what the run allocates, and at most what
// it reserves.
std::int64_t least_capacity(const RunAt& run, const sim::Simulation& unlimited) {
  std::int64_t fails = unlimited.device_peak_bytes - 1;
  std::int64_t runs = unlimited.device_reserved_bytes;
  while (runs - fails > known_to(runs)) {
    const std::int64_t middle = fails + (runs - fails) / 2;
    (run(middle).errors.empty() ? runs : fails) = middle;
  }
  return runs;
}

}  // namespace

bool Verdict::needs_more_than(std::int64_t device_bytes) const {
  return device_bytes < std::max(unlimited.device_peak_bytes, least_bytes - known_to(least_bytes));
}

Verdict judge(const RunAt& run, const Limits& limits, Judged judged) {
  Verdict verdict{.unlimited = run(0)};
  const sim::Simulation& free = verdict.unlimited;
  if (!free.errors.empty()) {
    verdict.refusal = free.errors.front().message;
    return verdict;
  }
  const bool allocated = judged == Judged::kAllocated;
  verdict.judged_bytes = cost_of(free, judged).device_reserved_bytes;
  verdict.least_bytes = allocated ? free.device_peak_bytes : least_capacity(run, free);
  return judge_again(std::move(verdict), run, limits, judged);
}

Verdict judge_again(Verdict verdict, const RunAt& run, const Limits& limits, Judged judged) {
  if (verdict.least_bytes == 0) return verdict;  // it fails whatever the limits
  const sim::Simulation& free = verdict.unlimited;
  verdict.step_ns = free.step_ns;
  verdict.fits = verdict.by_retries = false;
  verdict.refusal.clear();
  if (free.host_peak_bytes > limits.host_bytes) {
    verdict.refusal = "it pins " + format_bytes(free.host_peak_bytes) + " of the host's " +
                      format_bytes(limits.host_bytes);
    return verdict;
  }
  if (verdict.judged_bytes <= limits.budget_bytes) {
    verdict.fits = true;
    return verdict;
  }
  if (judged == Judged::kAllocated) {
    verdict.refusal = "it allocates " + format_bytes(free.device_peak_bytes);
    return verdict;
  }
  const sim::Simulation at = run(limits.budget_bytes);
  verdict.fits = verdict.by_retries = at.errors.empty();
  if (verdict.fits) {
    verdict.step_ns = at.step_ns;
    verdict.least_bytes = std::min(verdict.least_bytes, limits.budget_bytes);
  } else {
    verdict.refusal = at.errors.front().message;
  }
  return verdict;
}

}  // namespace ferry::plan
