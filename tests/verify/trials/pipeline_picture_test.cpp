// A pipeline's nodes, transfers and state are judged by the trial alone.
#include "verify/trials/pipeline_picture.h"

#include <gtest/gtest.h>

#include <string>

#include "shared/adaptors/bent.h"
#include "tests/verify/trials/verdicts.h"
#include "verify/trials/try_pipeline.h"

namespace ferry::verify {
namespace {

// Two stages on two devices, one layer each.
PipelineTrial two_stages(PipelineKind kind) {
  PipelineTrial trial;
  trial.kind = kind;
  trial.layers.resize(2);
  trial.layers[1].begins = true;
  return trial;
}

// With what it is told by.
struct Picture {
  explicit Picture(const PipelineTrial& trial) : graphs(trial), picture(trial, graphs) {}
  AskedNodeCounts nodes() const { return picture.nodes(); }
  CrossingCounts crossings() const { return picture.crossings(); }

  NetGraphs graphs;
  PipelinePicture picture;
};

std::int64_t total(const AskedNodeCounts& counts) {
  std::int64_t sum = 0;
  for (const auto& [node, count] : counts) sum += count;
  return sum;
}

TEST(PipelinePicture, BetweenStagesThereAreThreeNodesAndTheOrderOfMicroBatches) {
  PipelineTrial trial = two_stages(PipelineKind::kAutograd);
  EXPECT_EQ(total(Picture(trial).nodes()), 3 + (3 + 2));
  trial.mode = CheckpointMode::kAlways;  // two halves, and a join
  EXPECT_EQ(total(Picture(trial).nodes()), 3 + (3 + 2) + 2 * 2 * 3);
  trial.grad = false;
  EXPECT_EQ(total(Picture(trial).nodes()), 0);
  EXPECT_EQ(words(try_pipeline(trial)), "");
}

TEST(PipelinePicture, AScheduleHasACutForEachMicroBatch) {
  const PipelineTrial trial = two_stages(PipelineKind::k1F1B);
  EXPECT_EQ(Picture(trial).nodes(), (AskedNodeCounts{{{0, true, 1, 0, 0, 1}, 2}}));
  CrossingCounts crossings(2);
  crossings.move(0, 1, 2, 2);
  crossings.move(1, 0, 2, 2);
  EXPECT_EQ(Picture(trial).crossings().difference(crossings), "");
}

TEST(PipelinePicture, IsWhatARunIsComparedWith) {
  PipelineTrial trial = two_stages(PipelineKind::kAutograd);
  NetResult run = run_pipelined(trial);
  EXPECT_EQ(run.nodes, Picture(trial).nodes());
  EXPECT_EQ(run.vain_nodes, 0);
  EXPECT_EQ(run.crossings->difference(Picture(trial).crossings()), "");
  trial.microbatches = 3;
  EXPECT_NE(run.nodes, Picture(trial).nodes());
}

TEST(PipelinePicture, SecondValuesAndSkipTensorsMayHaveNoGradient) {
  for (const PipelineKind kind : {PipelineKind::kAutograd, PipelineKind::kGpipe}) {
    PipelineTrial trial = two_stages(kind);
    trial.layers.resize(4);
    trial.layers[3].begins = true;
    trial.layers[3].pops = 0;
    trial.mode = CheckpointMode::kAlways;
    trial.random = true;
    EXPECT_EQ(words(try_pipeline(trial)), "");
    trial.layers[0].detached = true;
    EXPECT_EQ(words(try_pipeline(trial)), "");
    trial.passenger = true;
    trial.carried = 1;
    EXPECT_EQ(words(try_pipeline(trial)), "");
    trial.carried = -1;
    trial.ids = true;
    trial.preserves = false;
    EXPECT_EQ(words(try_pipeline(trial)), "");
  }
}

TEST(PipelinePicture, ACallersHooksAreGivenWhatStagesSave) {
  for (const PipelineKind kind : {PipelineKind::kAutograd, PipelineKind::k1F1B}) {
    const PipelineTrial trial = two_stages(kind);
    const NetResult run = run_pipelined(trial);
    const bool loss = kind == PipelineKind::k1F1B;  // is the pipeline's own
    EXPECT_EQ(run.callers_packs, 2 * (2 + 2 + (loss ? 1 : 0)));
    EXPECT_EQ(run.losses, run_plain(trial).losses);
    EXPECT_EQ(run.state, "");
  }
}

// Three stages, of which the first is frozen: it has nothing to go backward for.
TEST(PipelinePicture, BeforeTheFirstLayerThatIsTrainedNothingHasAGraph) {
  PipelineTrial trial = two_stages(PipelineKind::kAutograd);
  trial.layers.resize(3);
  trial.layers[2].begins = true;
  trial.layers[0].frozen = trial.layers[1].frozen = true;
  const NetGraphs graphs(trial);
  EXPECT_FALSE(graphs.makes_node(1, 0));
  EXPECT_TRUE(graphs.makes_node(2, 0));
  // The second micro-batch of the last stage is ordered before the first: an edge, a copy, and
  // their two other ends.
  EXPECT_TRUE(graphs.passage(2, 1).orders);
  EXPECT_EQ(total(Picture(trial).nodes()), 2 + 2);
  EXPECT_EQ(words(try_pipeline(trial)), "");
  trial.mode = CheckpointMode::kAlways;  // it is not known what the stages have
  EXPECT_TRUE(NetGraphs(trial).makes_node(1, 0));
  EXPECT_FALSE(NetGraphs(trial).makes_node(0, 0));
  EXPECT_EQ(words(try_pipeline(trial)), "");
}

// With each of the four ways to go backward.
TEST(PipelineTrials, FrozenLayersAndStoppedGradientsAreTried) {
  for (int kind = 0; kind < 4; ++kind) {
    for (const CheckpointMode mode :
         {CheckpointMode::kAlways, CheckpointMode::kExceptLast, CheckpointMode::kNever}) {
      PipelineTrial trial;
      trial.kind = static_cast<PipelineKind>(kind);
      trial.mode = mode;
      trial.microbatches = 4;
      trial.layers.resize(4);
      for (NetLayer& layer : trial.layers) layer.begins = true;
      trial.layers[3].pops = 0;
      trial.layers[0].frozen = true;
      EXPECT_EQ(words(try_pipeline(trial)), "");
      trial.layers[0].frozen = false;
      for (const std::size_t stops : {1, 2, 3}) {
        PipelineTrial stopped = trial;
        stopped.layers[stops].stops = true;
        const NetResult plain = run_plain(stopped);
        EXPECT_NE(plain.gradients[0], 0u) << "it comes by the skip tensor";
        EXPECT_EQ(plain.gradients[1] == 0, stops > 1);
        EXPECT_EQ(words(try_pipeline(stopped)), "") << kind << ", " << name(mode) << ", " << stops;
      }
    }
  }
}

}  // namespace
}  // namespace ferry::verify
