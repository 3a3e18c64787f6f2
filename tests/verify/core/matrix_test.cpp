// Every mutant of the core is caught, by an oracle on a random program or by a case of its own.
#include "verify/mutants/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "verify/core/matrix.h"

namespace ferry::verify {
namespace {

class EveryMutant : public testing::TestWithParam<Mutant> {};

TEST_P(EveryMutant, IsCaught) {
  const MatrixRow row = mutation_matrix({GetParam()}, MatrixOptions()).front();
  EXPECT_TRUE(row.killed());
  std::cout << row.mutant.name << " | " << row.killed_by() << " | " << row.tests << "\n";
}

INSTANTIATE_TEST_SUITE_P(Core, EveryMutant, testing::ValuesIn(all_mutants()), [](const auto& each) {
  std::string text = each.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

// The canary: the hunt in which all these fall finds nothing in Ferry itself.
TEST(Mutants, TheCoreItselfSurvivesTheSameHunt) {
  for (const MutantPart part : {MutantPart::kOffload, MutantPart::kPipeline}) {
    MatrixOptions options;
    options.programs = 4000;
    const MatrixRow row = mutation_matrix({no_mutant(part)}, options).front();
    EXPECT_FALSE(row.killed()) << row.killed_by() << " " << row.replay;
    EXPECT_EQ(row.tests, options.programs);
  }
}

TEST(Mutants, CounterexamplesAreSmall) {
  std::vector<std::int64_t> sizes;
  for (const MatrixRow& row : mutation_matrix(all_mutants(), MatrixOptions())) {
    if (row.counterexample_ops) sizes.push_back(*row.counterexample_ops);
  }
  std::sort(sizes.begin(), sizes.end());
  EXPECT_LE(sizes[sizes.size() / 2], 10);
}

// They move other bytes, or more of them, and all that comes back is right.
TEST(Mutants, AccountsAloneSeeWhatNeedNotMove) {
  for (const Rule rule : {Rule::kCopyPart, Rule::kUseSource}) {
    const Mutant mutant{std::string(name(rule)), Rules::without(rule), std::nullopt,
                        MutantPart::kOffload, sim::WorldFault::kNoFault};
    EXPECT_EQ(mutation_matrix({mutant}, MatrixOptions()).front().oracle, Oracle::kAccounts);
  }
}

// What a recompute made stays for as long as a graph does. It is right, and it goes in the end.
TEST(Mutants, LivesAloneSeeWhatOutlivesItsBackward) {
  const Mutant mutant{"free at end", Rules::without(Rule::kFreeAtEnd), std::nullopt,
                      MutantPart::kCheckpoint, sim::WorldFault::kNoFault};
  EXPECT_EQ(mutation_matrix({mutant}, MatrixOptions()).front().oracle, Oracle::kLeak);
}

// What may stay and is made again all the same is right, and is there for longer than it need be.
TEST(Mutants, LifespansAloneSeeWhatIsMadeAgainForNobody) {
  const Mutant mutant{"keep chosen", Rules::without(Rule::kKeepChosen), std::nullopt,
                      MutantPart::kCheckpoint, sim::WorldFault::kNoFault};
  EXPECT_EQ(mutation_matrix({mutant}, MatrixOptions()).front().oracle, Oracle::kLeak);
}

// To wait for a node earlier than need be costs overlap, and nothing else.
TEST(Mutants, AccountsAloneSeeAReleaseThatComesTooEarly) {
  const Mutant mutant{"release late", Rules::without(Rule::kReleaseLate), std::nullopt,
                      MutantPart::kOffload, sim::WorldFault::kNoFault};
  EXPECT_EQ(mutation_matrix({mutant}, MatrixOptions()).front().oracle, Oracle::kAccounts);
}

// Nobody who is drawn gets the bytes while they are read; somebody else's program may.
TEST(Mutants, ATensorInUseElsewhereMustNotBeGivenOut) {
  const Mutation mutation{Step::kRecomputedInUse, Bend::kDrop};
  const Mutant mutant{"recomputed in use", Rules(), mutation, MutantPart::kCheckpoint,
                      sim::WorldFault::kNoFault};
  const MatrixRow row = mutation_matrix({mutant}, MatrixOptions()).front();
  EXPECT_EQ(row.oracle, Oracle::kHappensBefore);
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
