#include "sim/verify/campaign/attempt.h"

#include <exception>
#include <memory>
#include <utility>

#include "sim/choices/ddmin.h"
#include "sim/choices/strategies.h"
#include "sim/verify/campaign/closer_look.h"
#include "sim/verify/programs/smaller_trials.h"
#include "sim/verify/schedulers/trial.h"
#include "sim/verify/trials/core_trial.h"
#include "sim/verify/trials/pipeline_trial.h"

namespace ferry::verify {
namespace {

// Of a drawn pipeline's workers: about so many.
constexpr std::uint64_t kTurns = 64;

// Whether answers may differ from the usual ones but for failures. Where a program's own calls fail
// or stop early, the usual order of nodes is part of what is compared.
bool may_choose(const Attempt& attempt) {
  return attempt.is_pipeline() || attempt.trial.recipe.failure == StepFailure::kNone;
}

class Shrinker {
 public:
  Shrinker(const Attempt& attempt, const Verdict& verdict, int runs)
      : best_(attempt),
        oracle_(verdict.oracle),
        looks_closer_(oracle_ == Oracle::kDeterminism || oracle_ == Oracle::kSchedule),
        runs_(runs) {}

  Attempt shrink() {
    if (!objects(best_)) return best_;
    usual_answers();
    smaller_program();
    if (usual_answers()) smaller_program();
    best_.deviations =
        choices::ddmin(best_.deviations, [this](std::vector<choices::Deviation> some) {
          Attempt candidate = best_;
          candidate.deviations = std::move(some);
          return objects(candidate);
        });
    return best_;
  }

 private:
  // Whether there were others, which are not needed.
  bool usual_answers() {
    Attempt plain = best_;
    plain.deviations.clear();
    if (best_.deviations.empty() || !objects(plain)) return false;
    best_ = std::move(plain);
    return true;
  }

  void smaller_program() {
    if (best_.is_pipeline()) {
      best_.pipeline = smallest(&Attempt::pipeline);
    } else {
      best_.trial = smallest(&Attempt::trial);
    }
  }

  bool objects(const Attempt& candidate) {
    if (runs_-- <= 0) return false;
    choices::ReplayedChoices choices(candidate.deviations);
    return objects(candidate, choices);
  }
  bool objects(const Attempt& candidate, choices::Choices& choices) {
    auto found = try_attempt(candidate, &choices, nullptr);
    if (!found && looks_closer_) {
      Attempt whole = candidate;
      whole.deviations = choices.deviations();
      Coverage coverage;
      found = look_closer(whole, coverage);
    }
    if (!found || found->oracle != oracle_) return false;
    failure_ = choices.failure();
    return true;
  }

  template <class T>
  T smallest(T Attempt::*part) {
    return smallest_failing(best_.*part, [this, part](const T& smaller) {
      Attempt candidate = best_;
      candidate.*part = smaller;
      return objects(candidate) || objects_to_others(candidate);
    });
  }

  // A smaller program has its questions in other places: the answers may have to be others.
  bool objects_to_others(const Attempt& candidate) {
    const bool others = best_.deviations.size() > (failure_ ? 1u : 0u);
    for (std::uint64_t i = 0; i < 4 && !best_.deviations.empty() && runs_-- > 0; ++i) {
      choices::RandomChoices random(i);
      if (failure_ && *failure_ < i) return false;
      choices::OneFailure failing(failure_.value_or(0) - i, others ? &random : nullptr);
      choices::Choices& choices = failure_ ? static_cast<choices::Choices&>(failing) : random;
      if (!objects(candidate, choices)) continue;
      best_.deviations = choices.deviations();
      return true;
    }
    return false;
  }

  Attempt best_;
  std::optional<std::uint64_t> failure_;  // of the last that was objected to: which call failed
  const Oracle oracle_;
  const bool looks_closer_;  // no other oracle objected
  int runs_;
};

}  // namespace

std::optional<Verdict> try_attempt(const Attempt& attempt, choices::Choices* choices,
                                   StreamOpConsumer* watch) try {
  if (attempt.scheduler) {
    const Program program =
        schedulers::scheduler_program(*attempt.scheduler, attempt.trial.recipe, attempt.number);
    return schedulers::try_scheduler(*attempt.scheduler, program, watch);
  }
  const Subject subject{attempt.mutant.rules, attempt.mutant.mutation, attempt.mutant.world_fault};
  const Conditions conditions{choices, watch};
  if (attempt.is_pipeline()) return try_pipeline(attempt.pipeline, subject, conditions);
  return try_core(attempt.trial, subject, conditions);
} catch (const std::exception& error) {
  // Of the core's calls none comes this far: the program notes them.
  return Verdict{Oracle::kException, error.what()};
}

std::optional<Verdict> try_attempt(const Attempt& attempt, StreamOpConsumer* watch) {
  if (attempt.deviations.empty()) return try_attempt(attempt, nullptr, watch);
  choices::ReplayedChoices choices(attempt.deviations);
  return try_attempt(attempt, &choices, watch);
}

Attempt draw_attempt(const Mutant& mutant, Draws& draws, Sizes sizes) {
  Attempt attempt;
  attempt.mutant = mutant;
  if (attempt.is_pipeline()) {
    attempt.pipeline = draw_pipeline_trial(draws);
  } else {
    attempt.trial = draw_trial(draws, sizes);
  }
  return attempt;
}

Tried try_drawn(const Mutant& mutant, std::uint64_t seed, std::uint64_t number,
                StreamOpConsumer* watch, Sizes sizes) {
  Draws draws(seed, number);
  Tried tried;
  Attempt& attempt = tried.attempt;
  attempt = draw_attempt(mutant, draws, sizes);
  const bool chooses = draws.one_in(2) && may_choose(attempt);
  const bool fails = draws.one_in(6);
  const std::uint64_t seed_of_choices = draws.bits();
  choices::RandomChoices random(seed_of_choices);
  choices::PctChoices pct(seed_of_choices, kTurns, 3);
  choices::Choices* choices = nullptr;
  if (chooses) choices = &random;
  if (chooses && attempt.is_pipeline() && draws.one_in(2)) choices = &pct;
  // Early calls as often as late ones, whatever the program's size.
  const int calls = 1 << draws.in(3, 10);
  choices::OneFailure failing(static_cast<std::uint64_t>(draws.in(0, calls)), choices);
  if (fails) choices = &failing;
  tried.verdict = try_attempt(attempt, choices, watch);
  tried.chosen = chooses;
  if (choices) {
    attempt.deviations = choices->deviations();
    tried.asked = choices->asked();
    tried.failed = choices->failure().has_value();
  }
  return tried;
}

Tried try_drawn(const schedulers::SchedulerEntry& scheduler, std::uint64_t seed,
                std::uint64_t number) {
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
