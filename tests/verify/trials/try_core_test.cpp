// The oracles of a trial object to runs that are made up for them.
#include "verify/trials/try_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "tests/verify/trials/verdicts.h"
#include "verify/oracles/errors.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::verify {
namespace {

std::string_view oracle(const std::optional<Verdict>& verdict) {
  return verdict ? name(verdict->oracle) : "";
}

TEST(TryCore, AFailureIsToldOrDoesNotShow) {
  sim::Simulation keep, run;
  keep.gradients = run.gradients = {1, 2};
  EXPECT_EQ(oracle(judge_failure(keep, run)), "");
  run.gradients = {1, 3};
  EXPECT_EQ(oracle(judge_failure(keep, run)), "value");
  run.errors = {{7, "injected fault at reload"}};
  EXPECT_EQ(oracle(judge_failure(keep, run)), "");
  run.errors = {{7, "vector::at"}};
  EXPECT_EQ(oracle(judge_failure(keep, run)), "error");
  keep.errors = run.errors;
  run.gradients = keep.gradients;
  EXPECT_EQ(oracle(judge_failure(keep, run)), "");
  run.errors.clear();
  EXPECT_EQ(oracle(judge_failure(keep, run)), "error");
  run = keep;
  run.leftovers.events = 1;
  EXPECT_EQ(oracle(judge_failure(keep, run)), "leak");
}

// However little the program's tensors are: the bound is theirs.
TEST(TryCore, AStashOfSmallTensorsIsBoundedToo) {
  Trial trial;
  trial.recipe.layers.resize(10);
  trial.options.window_tensors = 1;
  trial.options.window_bytes = 0;
  Subject unbounded;
  unbounded.rules = Rules::without(Rule::kBoundStash);
  EXPECT_EQ(oracle(try_core(trial)), "");
  EXPECT_EQ(oracle(try_core(trial, unbounded)), "bound");
}

// A segment of one layer that saves its output, and a write of what it returned: what is recomputed
// is another tensor.
TEST(TryCore, AVersionIsRefusedWhereItMustBeAndNowhereElse) {
  Trial trial;
  trial.recipe.segments = true;
  trial.recipe.layers = {{.kind = LayerKind::kSavesOutput, .opens = 1, .closes = 1}};
  trial.recipe.failure = StepFailure::kSavedWritten;
  EXPECT_EQ(words(try_core(trial)), "");
  trial.recipe.layers[0].hold = true;  // the write is of what it was given
  EXPECT_EQ(words(try_core(trial)), "");
  EXPECT_EQ(oracle(try_core(trial, without(Rule::kCheckVersion))), "version");
}

// What no checker sees: that an unpacked tensor is another one than was saved.
TEST(TryCore, OfPipelinesWhatTheTapeNoticedCounts) {
  Subject drops;
  drops.mutation = Mutation{Step::kReload, Bend::kDrop};
  int seen = 0;
  for (std::uint64_t number = 0; number < 40; ++number) {
    Draws draws(3, number);
    const auto hazards = run_pipelined(draw_pipeline_trial(draws), drops).hazards;
    seen += std::any_of(hazards.begin(), hazards.end(), [](const check::Hazard& hazard) {
      return hazard.kind == check::HazardKind::kValue;
    });
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace ferry::verify
