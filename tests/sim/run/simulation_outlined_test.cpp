// Outlined and called without a recompute, a program does what it did. The contents of tensors name
// the statement that wrote them, so they are compared by the checkers of each run alone.
#include "formats/outline.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/program_check.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "sim/run/simulation.h"
#include "tests/sim/support/tiny.h"
#include "tests/sim/support/without_segments.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"

namespace ferry::sim {
namespace {

Program plain(Program program) {
  for (Code& code : program.codes) {
    for (Statement& statement : code.statements) {
      if (auto* call = std::get_if<Call>(&statement.action)) call->recompute = Recompute::kNone;
    }
  }
  return program;
}

std::size_t calls(const Code& code) {
  return static_cast<std::size_t>(std::count_if(
      code.statements.begin(), code.statements.end(),
      [](const Statement& statement) { return std::holds_alternative<Call>(statement.action); }));
}

struct Outcome {
  Simulation simulation;
  std::vector<std::string> kernels;
};

Outcome run(const Program& program, const Hardware& hardware, SimulationOptions options) {
  test::OpLog log;
  options.consumers = {&log};
  Outcome outcome{simulate(program, hardware, options), {}};
  outcome.kernels = log.kernels();
  return outcome;
}

class ShippedProgram : public ::testing::TestWithParam<std::pair<std::string, std::size_t>> {};

TEST_P(ShippedProgram, DoesInItsBlocksWhatItDid) {
  const auto& [name, blocks] = GetParam();
  const Program program = load_program(find_program(name));
  const std::vector<std::string> modules = segment_modules(program);
  ASSERT_EQ(modules.size(), blocks);
  const Program result = outline(program, modules);
  check_program(result, name);
  EXPECT_EQ(calls(result.codes[*forward_code(program)]), blocks);

  const Hardware hardware = find_hardware("h100");
  SimulationOptions unchecked;
  unchecked.check = false;
  const Outcome before = run(program, hardware, unchecked);
  const Outcome after = run(plain(result), hardware, unchecked);
  EXPECT_EQ(after.kernels, before.kernels);
  EXPECT_EQ(after.simulation.operations, before.simulation.operations);
  EXPECT_EQ(after.simulation.compute_ns, before.simulation.compute_ns);
  EXPECT_EQ(after.simulation.errors.size(), 0u);
  EXPECT_FALSE(after.simulation.leftovers.any());
  // Arguments live until their call ends.
  EXPECT_LE(after.simulation.device_peak_bytes, before.simulation.device_peak_bytes * 101 / 100);
}

INSTANTIATE_TEST_SUITE_P(OutlineTest, ShippedProgram,
                         ::testing::Values(std::pair<std::string, std::size_t>{"gpt2", 12},
                                           std::pair<std::string, std::size_t>{"llama3-8b", 32}));

// Modules around stretches of a forward that cut no exclusion in two.
std::vector<std::string> enclose(Code& forward) {
  std::vector<std::string> names;
  std::vector<Statement> statements;
  std::size_t excluded = 0;
  bool open = false;
  for (Statement& statement : forward.statements) {
    if (excluded == 0 && *test::in_range(0, 3) == 0) {
      if (!open) names.push_back("m." + std::to_string(names.size()));
      open = !open;
      statements.push_back({Module{names.back(), open}, 0});
    }
    if (const auto* exclude = std::get_if<Exclude>(&statement.action)) {
      excluded += exclude->begin ? 1 : -1;
    }
    statements.push_back(std::move(statement));
  }
  if (open) statements.push_back({Module{names.back(), false}, 0});
  forward.statements = std::move(statements);
  return names;
}

// Those that can be a segment.
std::vector<std::string> possible(const Program& program, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    try {
      outline(program, std::vector<std::string>{name});
      found.push_back(name);
    } catch (const std::invalid_argument&) {
      // It cuts a node from its save, or an edge from its tensor.
    }
  }
  return found;
}

RC_GTEST_PROP(OutlineProp, AnyModulesMayBeSegments, ()) {
  Program program = test::without_segments(test::make_program(*test::any_recipe()));
  std::vector<Code*> forwards;
  for (Code& code : program.codes) {
    if (code.name == "forward") forwards.push_back(&code);
  }
  const int chosen = *test::in_range(0, static_cast<int>(forwards.size()));
  const auto names = enclose(*forwards[static_cast<std::size_t>(chosen)]);
  check_program(program, "enclosed");
  const auto modules = possible(program, names);
  RC_CLASSIFY(!modules.empty());
  const Program result = outline(program, modules);
  check_program(result, "outlined");

  const bool offload = *rc::gen::arbitrary<bool>();
  SimulationOptions options;
  if (offload) options.offload.emplace();
  const Outcome before = run(program, test::tiny_hardware(), options);
  const Outcome after = run(plain(result), test::tiny_hardware(), options);
  RC_ASSERT(after.kernels == before.kernels);
  RC_ASSERT(after.simulation.hazards.size() == before.simulation.hazards.size());
  RC_ASSERT(!after.simulation.leftovers.any());
  RC_ASSERT(after.simulation.errors.size() == before.simulation.errors.size());
  for (std::size_t i = 0; i < before.simulation.errors.size(); ++i) {
    RC_ASSERT(after.simulation.errors[i].message == before.simulation.errors[i].message);
  }
  for (std::size_t i = 0; i < before.simulation.gradients.size(); ++i) {
    RC_ASSERT((after.simulation.gradients[i] == 0) == (before.simulation.gradients[i] == 0));
  }
  if (!offload) RC_ASSERT(after.simulation.compute_ns == before.simulation.compute_ns);
}

}  // namespace
}  // namespace ferry::sim
