#include "sim/verify/attempt.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/schedulers/trial.h"
#include "sim/verify/ddmin.h"
#include "sim/verify/judge.h"
#include "sim/verify/pipeline_trial.h"
#include "sim/verify/shrinks.h"
#include "sim/verify/strategies.h"

namespace ferry::verify {
namespace {

std::optional<Verdict> run(const Attempt& attempt, sim::HostChoices* choices,
                           sim::StreamOpConsumer* watch) {
  if (attempt.scheduler) {
    const Program program =
        sim::scheduler_program(*attempt.scheduler, attempt.trial.recipe, attempt.number);
    return sim::try_scheduler(*attempt.scheduler, program, watch);
  }
  const Subject subject{attempt.mutant.rules, attempt.mutant.mutation, attempt.mutant.beneath};
  Conditions conditions;
  conditions.choices = choices;
  conditions.watch = watch;
  if (attempt.fault.step != Step::kUser) {
    conditions.fault = std::make_shared<FaultPoint>(attempt.fault.step, attempt.fault.nth);
  }
  if (attempt.is_pipeline()) return try_pipeline(attempt.pipeline, subject, conditions);
  return try_core(attempt.trial, subject, conditions);
}

// Where calls fail or stop early, and where errors are counted, the usual order of nodes is part of
// what is compared.
bool may_choose(const Attempt& attempt) {
  return attempt.is_pipeline() || attempt.trial.recipe.failure == 0;
}

class Shrinker {
 public:
  Shrinker(const Attempt& attempt, const Verdict& verdict, int runs)
      : best_(attempt), oracle_(verdict.oracle), runs_(runs) {}

  Attempt shrink() {
    Attempt plain = best_;
    plain.deviations.clear();
    if (!best_.deviations.empty() && objects(plain)) best_ = plain;
    plain = best_;
    plain.fault = {};
    if (best_.fault.step != Step::kUser && objects(plain)) best_ = plain;
    if (best_.is_pipeline()) {
      best_.pipeline = smallest(&Attempt::pipeline);
    } else {
      best_.trial = smallest(&Attempt::trial);
    }
    best_.deviations = ddmin(best_.deviations, [this](std::vector<sim::Deviation> some) {
      Attempt candidate = best_;
      candidate.deviations = std::move(some);
      return objects(candidate);
    });
    return best_;
  }

 private:
  bool objects(const Attempt& candidate) {
    if (runs_-- <= 0) return false;
    return same(try_attempt(candidate));
  }
  bool same(const std::optional<Verdict>& found) const { return found && found->oracle == oracle_; }

  template <class T>
  T smallest(T Attempt::*part) {
    return shrunk(best_.*part, [this, part](const T& smaller) {
      Attempt candidate = best_;
      candidate.*part = smaller;
      return objects(candidate) || objects_to_others(candidate);
    });
  }

  // A smaller program has its choices in other places: the answers may have to be others.
  bool objects_to_others(const Attempt& candidate) {
    for (std::uint64_t seed = 0; seed < 3 && !best_.deviations.empty() && runs_-- > 0; ++seed) {
      RandomChoices choices(seed);
      if (!same(run(candidate, &choices, nullptr))) continue;
      best_.deviations = choices.deviations();
      return true;
    }
    return false;
  }

  Attempt best_;
  const std::string oracle_;
  int runs_;
};

}  // namespace

std::optional<Verdict> try_attempt(const Attempt& attempt, sim::StreamOpConsumer* watch) {
  if (attempt.deviations.empty()) return run(attempt, nullptr, watch);
  ReplayedChoices choices(attempt.deviations);
  return run(attempt, &choices, watch);
}

Tried try_drawn(const Mutant& mutant, std::uint64_t seed, std::uint64_t number,
                sim::StreamOpConsumer* watch, Sizes sizes) {
  Draws draws(seed, number);
  Tried tried;
  Attempt& attempt = tried.attempt;
  attempt.mutant = mutant;
  if (attempt.is_pipeline()) {
    attempt.pipeline = draw_pipeline_trial(draws);
  } else {
    attempt.trial = draw_trial(draws, sizes);
  }
  const bool chooses = draws.one_in(2) && may_choose(attempt);
  const bool fails = !attempt.is_pipeline() && draws.one_in(6);
  if (fails && !chooses) {
    attempt.fault = {static_cast<Step>(draws.in(1, static_cast<int>(kCheckpointSteps))),
                     draws.in(0, 12)};
  }
  if (!chooses) {
    tried.verdict = run(attempt, nullptr, watch);
    return tried;
  }
  RandomChoices choices(draws.bits(), fails ? draws.in(0, 60) : -1);
  tried.verdict = run(attempt, &choices, watch);
  attempt.deviations = choices.deviations();
  tried.asked = choices.asked();
  return tried;
}

Tried try_drawn(const sim::SchedulerEntry& scheduler, std::uint64_t seed, std::uint64_t number) {
  Draws draws(seed, number);
  Tried tried;
  tried.attempt.scheduler = &scheduler;
  tried.attempt.number = number;
  tried.attempt.trial.recipe = draw_recipe(draws);
  tried.verdict = try_attempt(tried.attempt);
  return tried;
}

Attempt shrink(const Attempt& attempt, const Verdict& verdict, int runs) {
  return Shrinker(attempt, verdict, runs).shrink();
}

}  // namespace ferry::verify
