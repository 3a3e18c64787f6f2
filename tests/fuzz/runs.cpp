#include "tests/fuzz/runs.h"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "formats/error.h"
#include "formats/plan_options.h"
#include "formats/program_check.h"
#include "formats/program_file.h"
#include "sim/explore/log_verdict.h"
#include "sim/run/simulation.h"
#include "tests/fuzz/property.h"

namespace ferry::fuzz {
namespace {

constexpr std::int64_t kWork = 1 << 12;

const char* const kStep = R"({"ferry":"program","schema":1,"name":"step"}
{"global":0,"kind":"parameter","name":"w","dtype":"f32","shape":[512,512],"grad":true}
{"global":1,"kind":"input","name":"x","dtype":"f32","shape":[512,512]}
{"code":0,"kind":"main"}
{"call":1,"in":[1],"out":[5]}
{"backward":[5]}
{"free":[5]}
{"code":1,"kind":"segment","arguments":[5],"results":[7]}
{"node":"Mm","id":0,"in":[5,0],"out":[6],"saved":[5,0],"body":2}
{"op":"aten.mm","in":[5,0],"out":[{"slot":6,"dtype":"f32","shape":[512,512]}],"flops":268435456}
{"node":"Relu","id":1,"in":[6],"out":[7],"body":3}
{"op":"aten.relu","in":[6],"out":[{"slot":7,"dtype":"f32","shape":[512,512]}],"written":1048576}
{"save":1,"slots":[7]}
{"free":[6]}
{"code":2,"kind":"body","arguments":[5],"saved":[6,7],"results":[8,9]}
{"op":"aten.mm","in":[5,7],"out":[{"slot":8,"dtype":"f32","shape":[512,512]}],"flops":268435456}
{"op":"aten.mm","in":[6,5],"out":[{"slot":9,"dtype":"f32","shape":[512,512]}],"flops":268435456}
{"code":3,"kind":"body","arguments":[5],"saved":[6],"results":[7]}
{"op":"aten.mul","in":[5,6],"out":[{"slot":7,"dtype":"f32","shape":[512,512]}],"read":2097152}
)";

Program step() {
  std::istringstream in(kStep);
  Program program = read_program(in, "step");
  check_program(program, "step");
  return program;
}

// A byte a nanosecond.
Hardware tiny() {
  Hardware card;
  card.name = "tiny";
  card.memory_bytes = card.host_memory_bytes = std::int64_t{1} << 40;
  card.flops_per_us.fill(1'000'000);
  card.memory_bytes_per_us = 1000;
  card.link = {1000, 1000, 1000, 1000, 10};
  return card;
}

sim::Simulation run(const Program& program, const Hardware& card,
                    std::optional<CoreOptions> offload) {
  sim::SimulationOptions options;
  options.offload = std::move(offload);
  options.work_most = kWork;
  const sim::Simulation result = sim::simulate(program, card, options);
  require(result.step_ns >= 0 && result.step_ns <= 2 * limits::kTimeNs, "a step takes its time");
  require(result.device_peak_bytes >= 0 && result.host_peak_bytes >= 0, "and memory");
  return result;
}

// The step above is fine, whatever runs it.
void run_step(const Program& program, const Hardware& card, std::optional<CoreOptions> offload) {
  const sim::Simulation result = run(program, card, std::move(offload));
  require(result.hazards.empty(), "a step that is fine runs without hazards");
  for (const sim::ProgramError& error : result.errors) {
    require(error.beyond_limits, "and ends within the limits");
  }
}

}  // namespace

void run_program(const Program& program) {
  CoreOptions all;
  all.min_bytes = 0;
  all.window_bytes = 0;
  try {
    run(program, tiny(), std::nullopt);
    run(program, tiny(), all);
  } catch (const LimitReached&) {
  }
}

void run_plan(const Plan& plan) {
  std::optional<CoreOptions> options;
  try {
    options = to_options(plan);
  } catch (const std::invalid_argument&) {
    return;  // an option that there is not
  }
  run_step(step(), tiny(), std::move(options));
}

void run_card(const Hardware& card) {
  run_step(step(), card, std::nullopt);
  run_step(step(), card, CoreOptions());
}

void run_times(const TimesTable& times) {
  Program program = step();
  const TimesUsed used = use_times({.tables = {times}, .profiled = {}}, tiny(), program);
  require(used.measured + used.scaled <= used.all, "times are of ops");
  run_step(program, tiny(), std::nullopt);
}

void run_hazard(const HazardFile& hazard) {
  constexpr std::size_t kLogBytes = 1 << 13;
  if (hazard.log.size() > kLogBytes) return;
  HazardFile judged = hazard;
  explore::LogVerdict found = explore::judge_log(hazard);
  require(found.schedule.empty() || !found.verdicts.empty(), "a schedule is of a verdict");
  if (!hazard.schedule.empty()) {
    try {
      explore::seen_in(hazard);
    } catch (const std::invalid_argument&) {
      // an order that there is not
    }
  }
  if (found.schedule.empty()) return;
  judged.schedule = found.schedule;
  require(explore::seen_in(judged) == found.seen, "a schedule shows what it is said to show");
}

}  // namespace ferry::fuzz
