// One training step, run for real and on the simulator from its capture, and the decisions of both.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ferry/capture.h"
#include "ferry/offload.h"
#include "formats/decision_log.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "formats/program_file.h"
#include "plan/survey.h"
#include "scenarios/hardware.h"
#include "shared/seam/options.h"
#include "sim/run/simulation.h"

namespace ferry::real::capture {

// Runs as often as asked; equal runs.
struct Step {
  std::shared_ptr<torch::nn::Module> module;
  CaptureInputs inputs;
  std::function<void()> run;
};

inline Program capture_of(const Step& step, bool times = false) {
  torch::manual_seed(7);
  return ferry::capture(*step.module, step.inputs, step.run,
                        CaptureOptions().name("step").times(times));
}

inline OffloadOptions real_options(const CoreOptions& core) {
  return OffloadOptions()
      .min_bytes(core.min_bytes)
      .window(core.window_bytes)
      .window_tensors(core.window_tensors)
      .prefetch(core.prefetch_bytes)
      .prefetch_tensors(core.prefetch_tensors)
      .hold(core.hold_bytes)
      .copy_streams(core.copy_streams)
      .reload_pool(core.reload_pool)
      .decisions(true);
}

inline std::vector<Decision> run_real(const Step& step, Offload offload) {
  offload.exempt(*step.module);
  step.module->zero_grad();
  torch::manual_seed(7);
  {
    const OffloadGuard guard(offload);
    step.run();
  }
  EXPECT_TRUE(offload.empty());
  return offload.take_decisions();
}

inline std::vector<Decision> run_real(const Step& step, const CoreOptions& core) {
  return run_real(step, Offload(real_options(core)));
}

inline std::vector<torch::Tensor> gradients(const Step& step) {
  std::vector<torch::Tensor> found;
  for (const torch::Tensor& parameter : step.module->parameters()) {
    found.push_back(parameter.grad().defined() ? parameter.grad().clone() : torch::Tensor());
  }
  return found;
}

inline bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::ranges::equal(a, b, [](const torch::Tensor& one, const torch::Tensor& other) {
    return one.defined() == other.defined() && (!one.defined() || one.equal(other));
  });
}

// Every other group of what the spans do not make again moves.
inline Plan every_other_group(const Program& program, const std::vector<PlanSpan>& spans = {}) {
  CoreOptions options;
  options.window_tensors = 3;
  options.prefetch_bytes = 32768;
  Plan plan;
  plan.options = plan_options(options);
  plan.spans = spans;
  const auto packs = plan::survey(program, find_hardware("rtx4090"), spans).packs;
  for (std::size_t i = 0; i < packs.size(); ++i) {
    const PlanChoice choice = packs[i].group % 2 == 0 ? PlanChoice::kOffload : PlanChoice::kKeep;
    plan.entries.push_back({i, packs[i].node, packs[i].layout, packs[i].group, choice});
  }
  return plan;
}

struct Simulated {
  std::vector<Decision> decisions;
  sim::Simulation result;
};

// `segments`: which of the program's are recomputed; none: all. `spans`: of its operators.
inline Simulated run_simulated(const Program& program, CoreOptions core, Rules rules = {},
                               std::shared_ptr<const SegmentPlan> segments = nullptr,
                               std::vector<PlanSpan> spans = {}) {
  Simulated simulated;
  core.log = [&](const Decision& decision) { simulated.decisions.push_back(decision); };
  sim::SimulationOptions options;
  options.offload = std::move(core);
  options.rules = rules;
  options.segments = std::move(segments);
  options.spans = std::move(spans);
  simulated.result = sim::simulate(program, find_hardware("rtx4090"), options);
  return simulated;
}

inline std::string text(const std::vector<Decision>& decisions, std::size_t at) {
  std::string text;
  for (std::size_t i = at < 4 ? 0 : at - 4; i < decisions.size() && i < at + 5; ++i) {
    const Decision& each = decisions[i];
    text += (i == at ? "> " : "  ") + std::to_string(i) + " " + std::string(name(each.kind)) + " " +
            std::to_string(each.run) + "." + std::to_string(each.pack) + " " +
            std::to_string(each.bytes) + "\n";
  }
  return text;
}

// None: the same sequence. Else what is wrong, with the first difference.
inline std::string difference(const std::vector<Decision>& real, const Simulated& simulated) {
  const sim::Simulation& run = simulated.result;
  if (!run.errors.empty()) return "error: " + run.errors.front().message;
  if (!run.hazards.empty()) return "hazard: " + to_string(run.hazards.front());
  if (run.leftovers.any()) return "something is left";
  const auto& other = simulated.decisions;
  std::size_t at = 0;
  while (at < real.size() && at < other.size() && real[at] == other[at]) ++at;
  if (at == real.size() && at == other.size()) return "";
  return "real:\n" + text(real, at) + "simulated:\n" + text(other, at);
}

}  // namespace ferry::real::capture
