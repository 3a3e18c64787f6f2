// Cut into stages and run on one device, a step does what it did. What is computed from what is
// compared by tests/sim/run/stage_trace.h: the simulator's contents name the code that wrote them.
#include "formats/stages.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "formats/program_check.h"
#include "formats/program_file.h"
#include "scenarios/programs.h"
#include "sim/run/simulation.h"
#include "tests/sim/run/stage_trace.h"
#include "tests/sim/support/tiny.h"
#include "tests/verify/support/gen.h"
#include "verify/programs/random_program.h"

namespace ferry::sim {
namespace {

struct Outcome {
  Simulation simulation;
  std::vector<std::string> kernels;
};

Outcome run(const Program& program, const Hardware& hardware, bool check = true) {
  test::OpLog log;
  SimulationOptions options;
  options.check = check;
  options.consumers = {&log};
  Outcome outcome{simulate(program, hardware, options), {}};
  outcome.kernels = log.kernels();
  return outcome;
}

bool is_replicated(const StagedProgram& staged) {
  return std::any_of(staged.replica_of.begin(), staged.replica_of.end(),
                     [](Slot of) { return of != kNoSlot; });
}

// Gives each statement a line of its own, by which traces name it.
Program numbered(Program program) {
  std::uint32_t line = 1;
  for (Code& code : program.codes) {
    code.line = line++;
    for (Statement& statement : code.statements) statement.line = line++;
  }
  return program;
}

struct Shipped {
  std::string name;
  std::size_t units;
  std::vector<std::size_t> first_units;
  std::size_t routes;
  std::vector<std::string> replicas;
};

class StagedShipped : public ::testing::TestWithParam<Shipped> {};

TEST_P(StagedShipped, DoesInStagesWhatItDid) {
  const Shipped& shipped = GetParam();
  const Program program = load_program(find_program(shipped.name));
  EXPECT_EQ(stage_units(program).size(), shipped.units);
  const StagedProgram staged = cut_into_stages(program, shipped.first_units);
  check_program(staged.program, shipped.name);
  EXPECT_EQ(staged.routes.size(), shipped.routes);
  std::vector<std::string> replicas;
  for (std::size_t i = program.globals.size(); i < staged.program.globals.size(); ++i) {
    replicas.push_back(staged.program.globals[i].name);
  }
  EXPECT_EQ(replicas, shipped.replicas);
  EXPECT_EQ(test::trace(staged.program), test::trace(program));
  EXPECT_TRUE(test::has_globals_of_its_own(staged));

  const Outcome before = run(program, find_hardware("h100"), false);
  const Outcome after = run(staged.program, find_hardware("h100"), false);
  EXPECT_EQ(after.simulation.errors.size(), 0u);
  EXPECT_FALSE(after.simulation.leftovers.any());
  if (!replicas.empty()) return;
  EXPECT_EQ(after.kernels, before.kernels);
  EXPECT_EQ(after.simulation.compute_ns, before.simulation.compute_ns);
  EXPECT_EQ(after.simulation.device_peak_bytes, before.simulation.device_peak_bytes);
}

// GPT-2: an edge and a tensor for each cut, and the tied embedding. Llama: the rotary embedding's
// two tables too. U-Net: an edge and a tensor for each cut and for each skip across one.
INSTANTIATE_TEST_SUITE_P(
    StagesTest, StagedShipped,
    ::testing::Values(Shipped{"gpt2", 14, {0, 4, 8}, 4, {"transformer.wte.weight@2"}},
                      Shipped{"llama3-8b", 34, {0, 10, 20, 30}, 12, {}},
                      Shipped{"unet", 13, {0, 3, 6, 9}, 16, {}}),
    [](const auto& shipped) { return std::string(shipped.param.name.substr(0, 4)); });

// Modules m.0, m.1, ... in the forward, back to back, of random lengths.
void add_modules(Program& program) {
  for (Code& code : program.codes) {
    if (code.name != "forward") continue;
    std::vector<Statement> statements;
    int modules = 0;
    int excluded = 0;
    const auto mark = [&](bool enter) {
      statements.push_back({Module{"m." + std::to_string(modules), enter}, 0});
    };
    mark(true);
    for (Statement& statement : code.statements) {
      if (excluded == 0 && *test::in_range(0, 4) == 0) {
        mark(false);
        ++modules;
        mark(true);
      }
      const auto* exclude = std::get_if<Exclude>(&statement.action);
      if (exclude) excluded += exclude->begin ? 1 : -1;
      statements.push_back(std::move(statement));
    }
    mark(false);
    code.statements = std::move(statements);
  }
}

// As many first units as may be, of some.
std::vector<std::size_t> possible_cuts(const Program& program) {
  std::vector<std::size_t> first_units = {0};
  for (std::size_t unit = 1; unit < stage_units(program).size(); ++unit) {
    if (*test::in_range(0, 3) == 0) continue;
    first_units.push_back(unit);
    try {
      cut_into_stages(program, first_units);
    } catch (const std::invalid_argument&) {
      first_units.pop_back();  // tests/formats/stages_test.cpp says why
    }
  }
  return first_units;
}

RC_GTEST_PROP(StagesProp, StagesDoTogetherWhatTheStepDid, ()) {
  test::Recipe recipe = *test::any_recipe();
  recipe.microbatches = recipe.derivatives = 1;
  recipe.retain = recipe.move = recipe.whole = false;
  recipe.failure = test::StepFailure::kNone;
  recipe.embeds = true;
  Program program = test::make_program(recipe);
  program.codes[program.main].statements.pop_back();  // the free of the loss
  add_modules(program);
  program = numbered(std::move(program));
  check_program(program, "with modules");
  std::vector<std::size_t> first_units;
  try {
    first_units = possible_cuts(program);
  } catch (const std::invalid_argument&) {
    RC_DISCARD("a forward of one piece");
  }
  const StagedProgram staged = cut_into_stages(program, first_units);
  check_program(staged.program, "staged");
  RC_CLASSIFY(staged.stages.size() > 1, "cut");
  RC_ASSERT(test::trace(staged.program) == test::trace(program));
  RC_ASSERT(test::has_globals_of_its_own(staged));

  const Outcome before = run(program, test::tiny_hardware());
  const Outcome after = run(staged.program, test::tiny_hardware());
  RC_ASSERT(after.simulation.hazards.size() == before.simulation.hazards.size());
  RC_ASSERT(after.simulation.errors.size() == before.simulation.errors.size());
  RC_ASSERT(!after.simulation.leftovers.any());
  std::vector<bool> reached(program.globals.size(), false);
  for (Slot global = 0; global < staged.program.globals.size(); ++global) {
    const Slot of = staged.replica_of[global] == kNoSlot ? global : staged.replica_of[global];
    if (after.simulation.gradients[global] != 0) reached[of] = true;
  }
  for (Slot global = 0; global < program.globals.size(); ++global) {
    RC_ASSERT(reached[global] == (before.simulation.gradients[global] != 0));
  }
  if (is_replicated(staged)) return;
  RC_CLASSIFY(staged.stages.size() > 1, "cut, nothing replicated");
  RC_ASSERT(after.kernels == before.kernels);
  RC_ASSERT(after.simulation.compute_ns == before.simulation.compute_ns);
  const Program model = test::with_lifetimes_of_stages(program, first_units);
  check_program(model, "with lifetimes of stages");
  RC_ASSERT(after.simulation.device_peak_bytes ==
            run(model, test::tiny_hardware()).simulation.device_peak_bytes);
}

}  // namespace
}  // namespace ferry::sim
