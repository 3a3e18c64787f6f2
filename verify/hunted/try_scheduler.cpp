#include "verify/hunted/try_scheduler.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/choices/draws.h"
#include "sim/run/training/run_training.h"
#include "sim/run/training/test_hardware.h"
#include "verify/hunted/unmoved.h"
#include "verify/oracles/errors.h"
#include "verify/oracles/hazards.h"
#include "verify/oracles/leaks.h"
#include "verify/oracles/moves.h"
#include "verify/programs/random_program.h"

namespace ferry::verify {
namespace {

// Moves wrong values to the end: a use of memory before its allocation or after its free explains
// them.
std::vector<check::Hazard> causes_first(std::vector<check::Hazard> hazards) {
  std::stable_partition(hazards.begin(), hazards.end(), [](const check::Hazard& hazard) {
    return hazard.kind != check::HazardKind::kValue;
  });
  return hazards;
}

// The consumers that watch the operations of a run.
struct Watches {
  explicit Watches(const Program& program) : moves(program) {}
  Unmoved unmoved;
  MoveWatch moves;
};

std::optional<Verdict> judge_promises(const HuntedScheduler& scheduler, const Watches& watches,
                                      const sim::Simulation& keep, const sim::Simulation& run) {
  if (scheduler.moves_all && watches.unmoved.any()) {
    return Verdict{Oracle::kMoves, watches.unmoved.words()};
  }
  if (scheduler.moves_once && !watches.moves.complaint().empty()) {
    return Verdict{Oracle::kMoves, watches.moves.complaint()};
  }
  const std::int64_t above = run.device_peak_bytes - keep.device_peak_bytes;
  if (scheduler.peak_bytes_above_keep && above > *scheduler.peak_bytes_above_keep) {
    return Verdict{Oracle::kBound, "the device's peak is " + std::to_string(above) +
                                       " bytes above that of a run that keeps everything"};
  }
  return std::nullopt;
}

// Asks the choices if a call fails, until end() is called.
class Faults {
 public:
  explicit Faults(choices::Choices* choices) {
    if (!choices) return;
    point_ = std::make_shared<FaultPoint>([this, choices](Step) {
      return !over_ && choices->choose(choices::ChoicePoint::kFault, 2) != 0;
    });
  }
  const std::shared_ptr<FaultPoint>& point() const { return point_; }
  void end() { over_ = true; }

 private:
  std::shared_ptr<FaultPoint> point_;
  bool over_ = false;
};

// Passes all calls on to the scheduler. From finish() on, no call of the device fails.
class FailsUntilTheEnd final : public sim::Scheduler {
 public:
  FailsUntilTheEnd(std::unique_ptr<sim::Scheduler> inner, Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}
  std::shared_ptr<Hooks<sim::Tensor>> hooks() override { return inner_->hooks(); }
  void exempt(const sim::Tensor& tensor) override { inner_->exempt(tensor); }
  void begin_forward() override { inner_->begin_forward(); }
  void finish() override {
    faults_.end();
    inner_->finish();
  }
  bool empty() const override { return inner_->empty(); }

 private:
  std::unique_ptr<sim::Scheduler> inner_;
  Faults& faults_;
};

}  // namespace

void limit(const HuntedScheduler& scheduler, Trial& trial) {
  Recipe& recipe = trial.recipe;
  if (recipe.layers.empty()) recipe.layers.emplace_back();  // limits change layers: one must exist
  recipe.embeds = true;  // without it, backward may have nothing to do
  if (scheduler.limit) scheduler.limit(recipe);
  for (const Feature feature : scheduler.without) info(feature).leave_out(trial);
}

SchedulerStep scheduler_step(const HuntedScheduler& scheduler, Trial trial, std::uint64_t number) {
  if (scheduler.program) return {scheduler.program(number)};
  limit(scheduler, trial);
  return {make_program(trial.recipe), std::move(trial.plan)};
}

SchedulerStep scheduler_step(const HuntedScheduler& scheduler, std::uint64_t number,
                             std::uint64_t seed) {
  choices::Draws draws(seed, number);
  Trial trial;
  trial.recipe = draw_recipe(draws);
  return scheduler_step(scheduler, std::move(trial), number);
}

std::optional<Verdict> try_scheduler(const HuntedScheduler& scheduler, const SchedulerStep& step,
                                     const Conditions& conditions) {
  const Hardware hardware = sim::test_hardware();
  const std::shared_ptr<const sim::Prepared> prepared = sim::prepare(step.program, hardware);
  const sim::Simulation keep = run_that_keeps(step.program, hardware, prepared);
  Watches watches(step.program);
  Faults faults(conditions.choices);
  sim::SimulationOptions options;
  options.prepared = prepared;
  options.consumers = {&watches.unmoved, &watches.moves};
  if (conditions.watch) options.consumers.push_back(conditions.watch);
  options.choices = conditions.choices;
  options.fault = faults.point();
  options.segments = step.plan;
  options.scheduler = [&](const sim::SimDevice& device, const sim::SimAutograd& autograd) {
    auto made = scheduler.make(device, autograd, faults.point());
    return watches.unmoved.watch(std::make_unique<FailsUntilTheEnd>(std::move(made), faults));
  };
  sim::Simulation run = sim::run_training(step.program, hardware, options);
  run.hazards = causes_first(std::move(run.hazards));
  if (struck(run, conditions)) return judge_failure(keep, run);
  if (auto verdict = judge_hazards(run.hazards)) return verdict;
  const std::string error = first_difference(sim::messages(keep), sim::messages(run));
  if (!error.empty()) return Verdict{Oracle::kError, error};
  if (keep.gradients != run.gradients) {
    return Verdict{Oracle::kValue, "a gradient differs from the run that keeps everything"};
  }
  if (auto verdict = judge_leaks(run.leftovers)) return verdict;
  return judge_promises(scheduler, watches, keep, run);
}

}  // namespace ferry::verify
