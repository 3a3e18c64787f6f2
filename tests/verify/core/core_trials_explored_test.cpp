// The core's own recordings: what a mutant's races do to values, and that the core's schedules do
// nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/choices/strategies.h"
#include "sim/explore/diagram.h"
#include "sim/explore/explorer.h"
#include "sim/explore/shrink_witness.h"
#include "sim/run/simulation.h"
#include "sim/run/training/test_hardware.h"
#include "verify/mutants/mutants.h"
#include "verify/programs/random_program.h"
#include "verify/trials/try_core.h"

namespace ferry::explore {
namespace {

struct Simulated {
  Recording recording;
  std::vector<check::Hazard> hazards;
};

// The run of a trial that depends on its number alone.
Simulated simulated(std::uint64_t number, const verify::Mutant& mutant = verify::no_mutant()) {
  verify::Draws draws(number);
  const verify::Trial trial = verify::draw_trial(draws);
  Simulated run;
  sim::SimulationOptions options;
  options.offload = trial.options;
  options.segments = trial.plan;
  options.rules = mutant.rules;
  options.mutation = mutant.mutation;
  options.consumers = {&run.recording};
  run.hazards =
      sim::simulate(verify::make_program(trial.recipe), sim::test_hardware(), options).hazards;
  return run;
}

// Every race of every mutant of offloading and checkpoints, on a few programs each; nearly all of
// them reach somebody who reads the wrong value.
TEST(ExploreCore, EveryRaceOfAMutantHasASchedule) {
  constexpr std::uint64_t kPrograms = 20;
  int mutants = 0, races = 0, unread = 0;
  for (const verify::Mutant& mutant : verify::all_mutants()) {
    if (mutant.part == verify::MutantPart::kPipeline) continue;
    const int races_before = races;
    for (std::uint64_t number = 0; number < kPrograms; ++number) {
      const Simulated run = simulated(number, mutant);
      if (run.hazards.empty()) continue;
      const Explorer explorer(run.recording);
      for (const check::Hazard& hazard : run.hazards) {
        if (!is_race(hazard.kind)) continue;
        const Confirmation c = explorer.confirm(hazard);
        ASSERT_EQ(c.result, Confirmation::Result::kConfirmed)
            << mutant.name << ", program " << number << ": " << to_string(hazard);
        races++;
        unread += c.witness->difference.evidence == Evidence::kUnread ? 1 : 0;
        EXPECT_EQ(c.witness->schedule.size(), 1u);
        EXPECT_FALSE(diagram(explorer, hazard, *c.witness).empty());
      }
    }
    mutants += races > races_before ? 1 : 0;
  }
  EXPECT_GE(mutants, 40);
  EXPECT_GE(races, 500);
  EXPECT_LT(unread * 20, races);
  RecordProperty("races", races);
}

TEST(ExploreCore, DrawnSchedulesOfTheCoreDoNotDiffer) {
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Simulated run = simulated(number);
    const Explorer explorer(run.recording);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      choices::RandomChoices random(seed);
      choices::PctChoices pct(seed, explorer.graph().size(), 3);
      for (choices::Choices* choices :
           {static_cast<choices::Choices*>(&random), static_cast<choices::Choices*>(&pct)}) {
        const Schedule schedule = schedule_of(draw_order(explorer.graph(), *choices));
        const auto witness = explorer.witness(schedule);
        // (What nobody reads may differ: torn copies.)
        EXPECT_TRUE(!witness || witness->difference.evidence == Evidence::kUnread)
            << "program " << number << ": " << to_string(explorer, *witness);
      }
    }
  }
}

// And they do find what is missing: in a mutant's run, a drawn schedule is shrunk to one delay.
TEST(ExploreCore, DrawnSchedulesOfAMutantDiffer) {
  verify::Mutant mutant;
  mutant.mutation = Mutation{Step::kConsume, Bend::kDrop};
  int found = 0;
  for (std::uint64_t number = 0; number < 20; ++number) {
    const Simulated run = simulated(number, mutant);
    if (run.hazards.empty()) continue;
    const Explorer explorer(run.recording);
    choices::RandomChoices random(number);
    const auto witness = explorer.search(random, 20).witness;
    if (!witness) continue;
    found++;
    const Witness small = shrink_witness(explorer, *witness, 500).witness;
    EXPECT_LE(small.schedule.size(), witness->schedule.size());
    EXPECT_EQ(small.schedule.size(), 1u);
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace ferry::explore
