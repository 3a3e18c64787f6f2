#include "verify/oracles/accounts.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "verify/programs/random_program.h"
#include "verify/trials/try_core.h"

namespace ferry::verify {
namespace {

// What is said of a core that was given `given`, where `told` is what it should have been given.
std::string complaint(const CoreOptions& given, const CoreOptions& told) {
  Recipe recipe;
  recipe.layers.resize(4);
  recipe.layers[1].kind = LayerKind::kSavesTwice;
  const Program program = make_program(recipe);
  Accounts accounts(told);
  sim::SimulationOptions options;
  options.offload = given;
  options.offload->log = [&](const Decision& decision) { accounts.decided(decision); };
  options.consumers = {&accounts};
  options.task_watches = {&accounts};
  options.hooks_watch = &accounts;
  const sim::Simulation run = sim::simulate(program, sim::test_hardware(), options);
  EXPECT_EQ(run.warnings, accounts.warnings());
  return accounts.complaint(run.statistics);
}

CoreOptions all_move() {
  CoreOptions options;
  options.min_bytes = 0;
  options.window_bytes = 0;
  return options;
}

TEST(Accounts, OfWhatIsDecidedAsItMustBe) {
  EXPECT_EQ(complaint(all_move(), all_move()), "");
  CoreOptions warns = all_move();
  warns.host_warn_percent = 0;
  EXPECT_EQ(complaint(warns, warns), "");
}

// All the same bytes are moved, and come back in time.
TEST(Accounts, SeeWhatIsNotDecidedInItsTurn) {
  CoreOptions never_ahead = all_move();
  never_ahead.prefetch_bytes = 0;
  EXPECT_EQ(complaint(never_ahead, all_move()).substr(0, 11), "it decided ");
  CoreOptions never_held = all_move();
  never_held.hold_bytes = 0;
  EXPECT_EQ(complaint(never_held, all_move()).substr(0, 11), "it decided ");
  CoreOptions stays = all_move();
  stays.window_bytes = kUnlimited;
  EXPECT_EQ(complaint(stays, all_move()).substr(0, 11), "it decided ");
}

}  // namespace
}  // namespace ferry::verify
