// Removes what the failure does not need: unusual answers, parts of the program, single deviations.
#include "verify/campaign/shrink_spec.h"

#include <optional>
#include <utility>

#include "sim/choices/ddmin.h"
#include "sim/choices/strategies.h"
#include "verify/campaign/closer_look.h"
#include "verify/programs/smaller_trials.h"

namespace ferry::verify {
namespace {

class Shrinker {
 public:
  Shrinker(const RunSpec& spec, const Verdict& verdict, int runs)
      : best_(spec),
        oracle_(verdict.oracle),
        looks_closer_(oracle_ == Oracle::kDeterminism || oracle_ == Oracle::kSchedule),
        runs_(runs) {}

  RunSpec shrink() {
    if (!objects(best_)) return best_;
    drop_deviations();
    smaller_program();
    if (drop_deviations()) smaller_program();
    best_.deviations =
        choices::ddmin(best_.deviations, [this](std::vector<choices::Deviation> some) {
          RunSpec candidate = best_;
          candidate.deviations = std::move(some);
          return objects(candidate);
        });
    return best_;
  }

 private:
  // Returns true if there were deviations and the failure survives without them.
  bool drop_deviations() {
    RunSpec plain = best_;
    plain.deviations.clear();
    if (best_.deviations.empty() || !objects(plain)) return false;
    best_ = std::move(plain);
    return true;
  }

  void smaller_program() {
    if (best_.is_pipeline()) {
      best_.pipeline = smallest(&RunSpec::pipeline);
    } else {
      best_.trial = smallest(&RunSpec::trial);
    }
  }

  bool objects(const RunSpec& candidate) {
    if (runs_-- <= 0) return false;
    choices::ReplayedChoices choices(candidate.deviations);
    return objects(candidate, choices);
  }
  bool objects(const RunSpec& candidate, choices::Choices& choices) {
    auto found = try_spec(candidate, &choices, nullptr);
    if (!found && looks_closer_) {
      RunSpec whole = candidate;
      whole.deviations = choices.deviations();
      Coverage coverage;
      found = look_closer(whole, coverage);
    }
    if (!found || found->oracle != oracle_) return false;
    failure_ = choices.failure();
    return true;
  }

  template <class T>
  T smallest(T RunSpec::*part) {
    return smallest_failing(best_.*part, [this, part](const T& smaller) {
      RunSpec candidate = best_;
      candidate.*part = smaller;
      return objects(candidate) || objects_to_others(candidate);
    });
  }

  // A smaller program asks its questions at other places, so it may need other answers to fail.
  bool objects_to_others(const RunSpec& candidate) {
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

  RunSpec best_;
  std::optional<std::uint64_t>
      failure_;  // the failing call in the last run that an oracle objected to
  const Oracle oracle_;
  const bool looks_closer_;  // only a closer look finds this failure
  int runs_;
};

}  // namespace

RunSpec shrink_spec(const RunSpec& spec, const Verdict& verdict, int runs_max) {
  return Shrinker(spec, verdict, runs_max).shrink();
}

}  // namespace ferry::verify
