// Every mutant of the core is caught: by an oracle on a random program, by a case of its own, or it
// is listed with the reason why it cannot be told from the core.
#include "sim/verify/mutants.h"

#include <gtest/gtest.h>

#include <cctype>
#include <iostream>
#include <set>
#include <string>

namespace ferry::verify {
namespace {

// Enough for each by a factor of two and more: the slowest takes about a thousand.
constexpr int kPrograms = 4000;
constexpr int kProgramsForEquivalent = 500;

class EveryMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryMutant, IsCaughtOrListed) {
  const Mutant& mutant = GetParam();
  if (const std::string* because = equivalent_because(mutant)) {
    EXPECT_FALSE(hunt(mutant, kProgramsForEquivalent)) << "it is caught: take it off the list";
    std::cout << mutant.name << " | equivalent | - | " << *because << "\n";
    return;
  }
  if (const Case* own = own_case(mutant)) {
    EXPECT_TRUE((*own)(no_mutant()));
    EXPECT_FALSE((*own)(mutant));
    std::cout << mutant.name << " | own case | 1 |\n";
    return;
  }
  const auto kill = hunt(mutant, kPrograms);
  ASSERT_TRUE(kill) << mutant.name << " survives";
  std::cout << mutant.name << " | " << kill->verdict.oracle << " | " << kill->tests << " | "
            << kill->verdict.words << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, EveryMutant, testing::ValuesIn(all_mutants()), [](const auto& each) {
  std::string text = each.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

TEST(Mutants, TheCoreItselfSurvivesTheSameHunt) {
  EXPECT_FALSE(hunt(no_mutant(), kPrograms));
  EXPECT_FALSE(hunt(no_mutant(MutantWorld::kPipeline), kPrograms));
}

TEST(Mutants, EveryStepHasOne) {
  std::set<Step> steps;
  for (const Mutant& mutant : all_mutants()) {
    if (mutant.mutation) steps.insert(mutant.mutation->step);
  }
  for (std::size_t i = 1; i < kSteps; ++i) {
    const Step step = static_cast<Step>(i);
    if (step == Step::kHostAllocate) continue;  // no order, no decision: it only may fail
    EXPECT_TRUE(steps.contains(step)) << name(step);
  }
}

}  // namespace
}  // namespace ferry::verify
