// What the tests of checkpoints on the tape ask of a program that ran on the simulated device: how
// often each of its ops ran, and whether everything else is as without checkpoints.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "tests/sim/support/layers.h"
#include "tests/sim/support/without_segments.h"

namespace ferry::test {

using Counts = std::map<std::string, int>;

struct Ran {
  sim::Simulation result;
  Census census;
  int of(const std::string& name) const {
    const auto found = census.runs.find(name);
    return found == census.runs.end() ? 0 : found->second;
  }
};

inline Ran run(const Program& program, sim::SimulationOptions options = {}) {
  Ran ran;
  options.consumers = {&ran.census};
  ran.result = sim::simulate(program, sim::test_hardware(), options);
  return ran;
}

// No hazard, nothing left, and the gradients of the same program with plain calls.
inline void expect_right(const Program& program, const Ran& ran) {
  const sim::Simulation plain = sim::simulate(without_segments(program), sim::test_hardware(), {});
  EXPECT_TRUE(plain.errors.empty());
  for (const check::Hazard& hazard : plain.hazards) ADD_FAILURE() << "plain: " << to_string(hazard);
  for (const check::Hazard& hazard : ran.result.hazards) ADD_FAILURE() << to_string(hazard);
  for (const sim::ProgramError& error : ran.result.errors) ADD_FAILURE() << error.message;
  EXPECT_EQ(ran.result.gradients, plain.gradients);
  EXPECT_FALSE(ran.result.leftovers.any());
  EXPECT_EQ(ran.result.checkpoints.alive, 0);
}

inline void expect_counts(const Ran& ran, const Counts& counts) {
  for (const auto& [name, times] : counts) EXPECT_EQ(ran.of(name), times) << name;
}

// One error that begins so, of the first of two steps; the second goes well.
inline void expect_error(const Ran& ran, const std::string& begin, std::size_t errors = 1) {
  ASSERT_EQ(ran.result.errors.size(), errors);
  EXPECT_EQ(ran.result.errors[0].message.substr(0, begin.size()), begin);
  for (const check::Hazard& hazard : ran.result.hazards) ADD_FAILURE() << to_string(hazard);
  EXPECT_FALSE(ran.result.leftovers.any());
}

}  // namespace ferry::test
