#include "verify/campaign/run_spec.h"

#include <exception>

#include "sim/choices/strategies.h"
#include "verify/hunted/try_scheduler.h"
#include "verify/oracles/invariants.h"

namespace ferry::verify {

RunSpec limited(RunSpec spec) {
  if (spec.scheduler && !spec.scheduler->program) limit(*spec.scheduler, spec.trial);
  return spec;
}

std::optional<Verdict> try_spec(const RunSpec& spec, choices::Choices* choices,
                                StreamOpConsumer* watch) try {
  const Conditions conditions{choices, watch};
  return asking_invariants([&]() -> std::optional<Verdict> {
    if (!spec.scheduler) return spec.core->try_spec(spec, conditions);
    return try_scheduler(*spec.scheduler, scheduler_step(*spec.scheduler, spec.trial, spec.number),
                         conditions);
  });
} catch (const std::exception& error) {
  // The simulated program catches what its own calls throw, so this exception comes from elsewhere.
  return Verdict{Oracle::kException, error.what()};
}

std::optional<Verdict> try_spec(const RunSpec& spec, StreamOpConsumer* watch) {
  if (spec.deviations.empty()) return try_spec(spec, nullptr, watch);
  choices::ReplayedChoices choices(spec.deviations);
  return try_spec(spec, &choices, watch);
}

}  // namespace ferry::verify
