// Trainings that are an optimizer's step and little else: three fp32 parameters of 4, 8 and 16 MiB.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "formats/builder.h"
#include "formats/program_check.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"

namespace ferry::test {

constexpr std::int64_t kParameters = 28 << 20;

// A loss of all parameters, whose backward makes a gradient for each, in a tensor of its own. One
// more of `idle_bytes`, if any, is not used.
inline Program of_parameters(const std::vector<std::pair<std::int64_t, DType>>& sizes,
                             std::int64_t idle_bytes = 0) {
  Builder b;
  b.program.name = "parameters";
  std::vector<TypeId> types;
  std::vector<Slot> parameters;
  for (const auto& [bytes, dtype] : sizes) {
    types.push_back(b.type({bytes / itemsize(dtype)}, dtype));
    parameters.push_back(b.global(GlobalKind::kParameter, types.back()));
  }
  if (idle_bytes > 0) b.global(GlobalKind::kParameter, b.type({idle_bytes / 4}, DType::kF32));
  const TypeId scalar = b.type({1}, DType::kF32);
  const CodeId body = b.code(CodeKind::kBody, "LossBackward");
  const Slot one = b.argument(body);
  for (const TypeId type : types) b.result(body, b.op(body, "gradient", {one}, type));
  const CodeId forward = b.code(CodeKind::kSegment, "forward");
  const Slot loss = b.op(forward, "loss", parameters, scalar);
  b.add(forward, MakeNode{"LossBackward", b.node_id(), parameters, {loss}, {}, body});
  b.result(forward, loss);
  const Slot made = b.slot(0);
  b.add(0, Call{forward, {}, {made}});
  b.add(0, Backward{{made}, {}, {}, false, false});
  check_program(b.program, "parameters");
  return b.program;
}

inline Program three() {
  return of_parameters({{4 << 20, DType::kF32}, {8 << 20, DType::kF32}, {16 << 20, DType::kF32}});
}

inline sim::Simulation trained(const Program& program, sim::Training training, std::size_t steps) {
  sim::SimulationOptions options;
  options.training = training;
  options.training.steps = steps;
  sim::Simulation run = sim::simulate(program, tiny_hardware(), options);
  for (const check::Hazard& hazard : run.hazards) ADD_FAILURE() << to_string(hazard);
  for (const sim::ProgramError& error : run.errors) ADD_FAILURE() << error.message;
  EXPECT_FALSE(run.leftovers.any());
  EXPECT_EQ(run.peak_kinds.sum(), run.device_peak_bytes);
  return run;
}

}  // namespace ferry::test
