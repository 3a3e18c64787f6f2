// Campaigns: the same programs whatever the threads; the first failure is the one that is told.
#include "verify/campaign/campaign.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/sim/support/calls.h"
#include "verify/campaign/closer_look.h"
#include "verify/campaign/replay_line.h"
#include "verify/core/core_trials.h"
#include "verify/core/matrix.h"
#include "verify/report/report.h"

namespace ferry::verify {
namespace {

TEST(Campaign, ThreadsDoNotShow) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 3;
  options.programs = 300;
  const Campaign one = run_campaign(options);
  options.jobs = 3;
  const Campaign three = run_campaign(options);
  EXPECT_FALSE(one.failure);
  EXPECT_FALSE(three.failure);
  EXPECT_EQ(one.coverage.programs, 300);
  EXPECT_EQ(three.coverage.programs, 300);
  EXPECT_EQ(one.coverage.operations, three.coverage.operations);
  EXPECT_EQ(one.coverage.steps, three.coverage.steps);
  EXPECT_EQ(one.coverage.asked, three.coverage.asked);
  EXPECT_EQ(one.coverage.features, three.coverage.features);
}

// The counts were of whatever the threads had tried by then.
TEST(Campaign, WhereAProgramFailsThreadsDoNotShow) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 3;
  options.programs = 2000;
  options.canary = find_mutant("consume.drop");
  const Campaign one = run_campaign(options);
  ASSERT_TRUE(one.failure);
  EXPECT_EQ(one.coverage.programs, static_cast<std::int64_t>(one.failure->number) + 1);
  options.jobs = 4;
  for (int i = 0; i < 3; ++i) {
    const Campaign four = run_campaign(options);
    ASSERT_TRUE(four.failure);
    EXPECT_EQ(four.failure->number, one.failure->number);
    EXPECT_EQ(to_line(four.failure->spec), to_line(one.failure->spec));
    EXPECT_EQ(four.coverage.programs, one.coverage.programs);
    EXPECT_EQ(four.coverage.operations, one.coverage.operations);
    EXPECT_EQ(four.coverage.features, one.coverage.features);
  }
}

TEST(Campaign, EveryStepIsTakenAndEveryPointAsked) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 4;
  options.programs = 2000;
  const Coverage coverage = run_campaign(options).coverage;
  // Wards are in no program: TryWards takes their steps.
  for (std::size_t step = 1; step < kPipelineSteps; ++step) {
    EXPECT_GT(coverage.steps[step], 0) << name(static_cast<Step>(step));
  }
  for (std::size_t i = 0; i < choices::kChoicePoints; ++i) {
    EXPECT_GT(coverage.asked[i], 0u) << choices::kChoiceNames[i];
  }
  EXPECT_GT(coverage.failures, 0);
  EXPECT_GT(coverage.schedules, 0);
  for (const char* feature :
       {"nested segments", "reentrant segment", "no early stop", "retain_graph", "third derivative",
        "selective plan", "pipeline", "pageable memory"}) {
    EXPECT_TRUE(coverage.features.contains(feature)) << feature;
  }
}

// Each call and each allocation of some programs fails once, each poll is late once, and so on.
TEST(Campaign, EveryWayWithOneUnusualAnswer) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 6;
  options.programs = 32;
  options.deviations = 1;
  options.jobs = 2;
  const Campaign campaign = run_campaign(options);
  ASSERT_FALSE(campaign.failure) << to_line(campaign.failure->spec) << "\n"
                                 << campaign.failure->verdict.words;
  EXPECT_EQ(campaign.coverage.programs, 32);
  EXPECT_GT(campaign.coverage.runs, 1000);
  EXPECT_GT(campaign.coverage.failures, 20);
}

// Where happens-before had missed a race: an order shows it, made small.
TEST(CloserLook, AnOrderThatShowsAnotherValueIsTold) {
  constexpr Range kX{0x1000, 16};
  test::Calls calls;
  calls.kernel(0, {}, {kX}, "make").kernel(1, {kX}, {}, "use");
  Coverage coverage;
  std::optional<Verdict> found;
  for (std::uint64_t seed = 0; seed < 10 && !found; ++seed) {
    found = try_orders(calls.recording(), seed, coverage);
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(found->oracle, Oracle::kSchedule);
  EXPECT_NE(found->words.find("in schedule 0@1 use #1 reads"), std::string::npos) << found->words;
  EXPECT_GT(coverage.schedules, 0);
  test::Calls ordered;
  ordered.kernel(0, {}, {kX}).record(1, 0).wait(1, 1).kernel(1, {kX}, {});
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_FALSE(try_orders(ordered.recording(), seed, coverage));
  }
}

// So does time; but how far a program comes in a time is the machine's to say.
TEST(Campaign, WhatAStopCutOffIsTriedAgain) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seed = 4;
  options.programs = 2;
  options.sizes = Sizes::kSmall;
  options.deviations = 1;
  const Coverage whole = run_campaign(options).coverage;
  int asked = 0;
  options.stop = [&asked] { return ++asked > 10; };
  Settled settled;
  options.ended = [&settled](const Ledger& ledger) { settled = ledger.settled(); };
  EXPECT_EQ(run_campaign(options).coverage.cut_off, 1);
  EXPECT_EQ(settled.end, 0u);
  options.stop = nullptr;
  options.from = settled;
  const Coverage again = run_campaign(options).coverage;
  EXPECT_EQ(again.runs, whole.runs);
  EXPECT_EQ(again.operations, whole.operations);
  EXPECT_EQ(again.cut_off, 0);
}

TEST(Campaign, EndsInTime) {
  CampaignOptions options;
  options.core = &core_trials();
  options.seconds = 0.2;
  EXPECT_GT(run_campaign(options).coverage.programs, 0);
}

// What a report says, of a race.
TEST(Report, NamesTheEdgeAndHowToSeeItAgain) {
  const MatrixRow row = mutation_matrix({*find_mutant("consume.drop")}, MatrixOptions()).front();
  EXPECT_EQ(row.killed_by(), "happens-before");
  const Report report = explain(parse_line(row.replay, {&core_trials()}));
  EXPECT_TRUE(report.confirmed);
  EXPECT_NE(report.text.find("`consume` missing"), std::string::npos) << report.text;
  EXPECT_NE(report.text.find("no edge"), std::string::npos);
  EXPECT_NE(report.text.find("to order them: take the step `consume`"), std::string::npos);
  EXPECT_NE(report.text.find("ferry verify --replay '" + row.replay + "'"), std::string::npos);
  // Whoever reads the report sees what the program is, and not the numbers that it was drawn as.
  EXPECT_NE(report.text.find("program  1 layer: linear, 256 elements; one copy stream, window 1 "
                             "pack\n"),
            std::string::npos)
      << report.text;
  EXPECT_LE(std::count(report.text.begin(), report.text.end(), '\n'), 40);
}

// A report that ended with "layers {0,0} ... order 0 failure 0@0" was for its author alone.
TEST(Report, SaysInWordsWhatAProgramIs) {
  const auto text = [](const auto& trial) {
    std::ostringstream out;
    out << trial;
    return out.str();
  };
  Trial trial;
  trial.recipe.layers.resize(2);
  trial.recipe.layers[1] = {.kind = LayerKind::kSavesView,
                            .size = 1,
                            .extra = Extra::kDropout,
                            .opens = 1,
                            .closes = 2,
                            .segment = kNoEarlyStop};
  trial.recipe.microbatches = 2;
  trial.recipe.order = MicrobatchOrder::kFfbb;
  trial.recipe.failure = StepFailure::kBackwardRaises;
  trial.recipe.failing_layer = 3;
  trial.options.host_memory = HostMemory::kPageable;
  trial.options.min_bytes = 0;
  trial.options.window_bytes = 4096;
  trial.options.prefetch_bytes = 0;
  trial.options.hold_bytes = 0;
  EXPECT_EQ(text(trial),
            "2 layers: linear, 256 elements | saves a view, 1024 elements; 2 micro-batches, FFBB, "
            "an input with a gradient, first a step that fails at layer 2 (backward raises); two "
            "copy streams, window 4096 "
            "bytes, pageable memory");
  trial.recipe.segments = true;
  EXPECT_NE(text(trial).find("1024 elements, random numbers, begins 1 segment without early stop, "
                             "ends 2 segments; "),
            std::string::npos)
      << text(trial);
  PipelineTrial pipeline;
  pipeline.layers = {{.size = 0}, {.size = 1, .begins = true}, {.size = 0, .pops = 0}};
  pipeline.kind = PipelineKind::kGpipe;
  EXPECT_EQ(text(pipeline),
            "3 layers in 2 stages: 256 elements || 2048 elements | 256 elements, reads the skip "
            "tensor of layer 1; GPipe, checkpoint never, 2 micro-batches");
}

}  // namespace
}  // namespace ferry::verify
