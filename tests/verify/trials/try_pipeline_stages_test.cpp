// Stages cut by costs, what each of them keeps, and what layers declare are judged.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/verify/trials/verdicts.h"
#include "verify/oracles/cuts.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::verify {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(Cuts, TheBestCutIsFoundByTryingAll) {
  EXPECT_EQ(best_cut(std::array<std::int64_t, 5>{1, 1, 6, 1, 1}, 2), (Sizes{3, 2}));
  EXPECT_EQ(best_cut(std::array<std::int64_t, 4>{7, 1, 1, 1}, 2), (Sizes{1, 3}));
  EXPECT_EQ(best_cut(std::array<std::int64_t, 4>{0, 0, 0, 0}, 3), (Sizes{2, 1, 1}));
}

TEST(Cuts, ASkipTensorIsStashedOnceAndPoppedOnceAfterwards) {
  EXPECT_EQ(unmatched({{0, false, "a"}, {2, true, "a"}}), std::vector<std::string>());
  EXPECT_EQ(unmatched({{2, false, "a"}, {0, true, "a"}, {1, false, "b"}}),
            (std::vector<std::string>{"a", "b"}));
}

PipelineTrial pipeline_trial() {
  PipelineTrial trial;
  trial.kind = PipelineKind::k1F1B;
  trial.layers.resize(4);
  trial.layers[2].begins = true;
  return trial;
}

TEST(Stages, StagesAreCutByCosts) {
  PipelineTrial trial = pipeline_trial();
  trial.layers[0].cost = 5;
  trial.balanced = 2;
  EXPECT_EQ(words(try_pipeline(trial)), "");
  EXPECT_EQ(words(try_pipeline(trial, without(Rule::kBalanceCosts))),
            "cut: stages begin at layers 1 3, which is balanced worse than 1 2");
}

// GPipe's forwards all come before its first backward.
TEST(Stages, AStageGoesBackwardWhenItsScheduleSays) {
  PipelineTrial trial = pipeline_trial();
  trial.microbatches = 3;
  EXPECT_EQ(words(judge_schedule(trial, run_pipelined(trial))), "");
  PipelineTrial other = trial;
  other.kind = PipelineKind::kGpipe;
  EXPECT_EQ(words(judge_schedule(trial, run_pipelined(other))),
            "schedule: layer 0 runs 3 forwards before its first backward, not 2");
}

TEST(Stages, EachStageKeepsWhatItsPolicySays) {
  PipelineTrial trial = pipeline_trial();
  trial.mode = CheckpointMode::kAlways;
  trial.policies = true;
  trial.offload.emplace();
  trial.layers[2].policy = StagePolicy::kCheckpointOffload;
  EXPECT_EQ(words(try_pipeline(trial)), "");
  EXPECT_EQ(words(try_pipeline(trial, without(Rule::kCheckpointStages))),
            "count: layer 0 ran 4 times, not 2");
  EXPECT_EQ(words(try_pipeline(trial, without(Rule::kPutAway))),
            "accounts: stage 2 gave its hooks 0 tensors, not 2");
}

TEST(Stages, DeclarationsThatDoNotFitAreRefused) {
  PipelineTrial trial = pipeline_trial();
  trial.stray = Stray::kStash;
  EXPECT_EQ(words(try_pipeline(trial)), "");
  EXPECT_EQ(words(try_pipeline(trial, without(Rule::kPopStashed))),
            "error: wrong declarations of 'of 0' were accepted");
}

}  // namespace
}  // namespace ferry::verify
