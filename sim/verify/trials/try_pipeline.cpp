#include "sim/verify/trials/try_pipeline.h"

#include "sim/verify/oracles/errors.h"
#include "sim/verify/oracles/hazards.h"

namespace ferry::verify {

NetResult run_plain(const PipelineTrial& trial) {
  NetRun run(trial, false);
  return run.result([&] {
    if (trial.grad) run.plain();
  });
}

NetResult run_pipelined(const PipelineTrial& trial, const Subject& subject,
                        const Conditions& conditions) {
  NetRun run(trial, true, conditions.choices, conditions.watch);
  // Every device of the run, each with the same of what is adapted.
  const auto with = [&]<class D>(const auto& adapted, std::vector<D> devices) {
    for (std::uint32_t d = 0; d < run.devices(); ++d) {
      devices.emplace_back(sim::SimDevice(run.machine(), d), adapted);
    }
    run.pipelined(devices, subject.rules);
  };
  return run.result([&] {
    if (conditions.choices && !subject.mutation) {
      with(sim::fault_of(*conditions.choices), std::vector<Faulty<sim::SimDevice>>());
    } else {
      with(subject.mutation, std::vector<Bent<sim::SimDevice>>());
    }
  });
}

namespace {

// A step that fails leaves nothing, and its cause is told; or the core had another way.
std::optional<Verdict> judge_failure(const NetResult& expected, const NetResult& run) {
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (run.left != 0) return Verdict{Oracle::kLeak, "something is left after a step that failed"};
  if (is_told_failure(run.error)) return std::nullopt;
  if (!run.error.empty())
    return Verdict{Oracle::kError, "a failure whose cause is lost: " + run.error};
  if (run.gradients != expected.gradients)
    return Verdict{Oracle::kValue, "a failure changed a gradient"};
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> try_pipeline(const PipelineTrial& trial, const Subject& subject,
                                    const Conditions& conditions) {
  const NetResult expected = run_plain(trial);
  const NetResult run = run_pipelined(trial, subject, conditions);
  if (conditions.choices && conditions.choices->failure()) return judge_failure(expected, run);
  if (!run.error.empty()) return Verdict{Oracle::kError, run.error};
  if (const auto hazard = judge_hazards(run.hazards)) return hazard;
  if (run.gradients != expected.gradients) return Verdict{Oracle::kValue, "a gradient differs"};
  const auto stop =
      trial.grad ? checkpoint_stop(trial.mode, static_cast<std::size_t>(trial.microbatches)) : 0;
  const auto runs = trial.steps * (trial.microbatches + static_cast<int>(stop) * trial.backwards);
  for (std::size_t i = 0; i < trial.layers.size(); ++i) {
    const auto found = run.runs.find("layer" + std::to_string(i));
    const std::int64_t ran = found == run.runs.end() ? 0 : found->second;
    if (ran == runs) continue;
    return Verdict{Oracle::kCount, "layer " + std::to_string(i) + " ran " + std::to_string(ran) +
                                       " times, not " + std::to_string(runs)};
  }
  if (run.kept != 0) {
    return Verdict{Oracle::kLeak, std::to_string(run.kept) + " storages are kept after backward"};
  }
  if (run.left != 0) return Verdict{Oracle::kLeak, "something is left after the step"};
  return std::nullopt;
}

}  // namespace ferry::verify
