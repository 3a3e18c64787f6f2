// A GPT in stages learns what it learns in one piece: losses and weights are the same bits,
// whatever the schedule, and whatever runs again or moves.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "formats/decision_log.h"
#include "formats/error.h"
#include "formats/staged_plan.h"
#include "formats/text_file.h"
#include "real/train/options.h"
#include "real/train/policy.h"
#include "real/train/step.h"
#include "real/train/workload.h"
#include "tests/real/api/message.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

class PipelineTest : public ::testing::Test {
 protected:
  struct Trained {
    std::vector<float> losses;
    std::vector<std::string> names;
    std::vector<torch::Tensor> weights;
    std::int64_t moved_bytes = 0;
  };

  Options parse(const std::string& arguments) const {
    return test::parse("gpt --layers 3 --width 16 --heads 2 --context 16 --batch 12 --data " +
                       folder_.text() + " " + arguments);
  }

  Trained train(const std::string& arguments) const {
    const Options options = parse(arguments);
    const auto workload = make_workload(options);
    workload->module().train();
    torch::optim::AdamW optimizer(workload->module().parameters(),
                                  torch::optim::AdamWOptions(options.learning_rate));
    Policy policy(options, *workload);
    Trained trained;
    for (std::int64_t step = 0; step < 3; ++step) {
      const torch::Tensor loss =
          forward_and_backward(*workload, policy, workload->batch(step), options.microbatches);
      EXPECT_FALSE(loss.requires_grad());
      trained.losses.push_back(loss.item<float>());
      optimizer.step();
      optimizer.zero_grad();
      trained.moved_bytes += policy.end_step();
    }
    for (const auto& parameter : workload->module().named_parameters()) {
      trained.names.push_back(parameter.key());
      trained.weights.push_back(parameter.value().detach());
    }
    return trained;
  }

  void expect_same(const Trained& plain, const std::string& arguments) const {
    SCOPED_TRACE(arguments);
    const Trained staged = train(arguments);
    EXPECT_EQ(staged.losses, plain.losses);
    ASSERT_EQ(staged.names, plain.names);
    for (std::size_t i = 0; i < plain.weights.size(); ++i) {
      EXPECT_TRUE(staged.weights[i].equal(plain.weights[i])) << plain.names[i];
    }
  }

  test::Folder folder_;
};

TEST_F(PipelineTest, EveryScheduleAndCheckpointModeLearnsTheSame) {
  const Trained plain = train("--microbatches 4");
  EXPECT_NE(plain.losses, train("").losses) << "other sums";
  for (const char* stages : {"--stages 1", "--stages 2", "--stages 3 --schedule gpipe",
                             "--stages 5 --schedule 1f1b", "--stages 4 --schedule interleaved",
                             "--stages 3 --schedule interleaved "
                             "--stages-per-device 3"}) {
    for (const char* mode : {"always", "except_last", "never"}) {
      expect_same(plain, std::string("--microbatches 4 ") + stages + " --pipe-checkpoint " + mode);
    }
  }
}

TEST_F(PipelineTest, PoliciesInsideTheStages) {
  const Trained plain = train("--microbatches 3");
  expect_same(plain, "--microbatches 3 --policy checkpoint");
  for (const std::string mode : {"always", "never"}) {
    const std::string stages = "--microbatches 3 --stages 3 --pipe-checkpoint " + mode;
    expect_same(plain, stages + " --policy checkpoint");
    for (const char* policy : {"offload", "mixed"}) {
      const std::string arguments =
          stages + " --policy " + policy + " --min-bytes 64 --window 4KiB --prefetch 4KiB";
      expect_same(plain, arguments);
      EXPECT_GT(train(arguments).moved_bytes, 0);
    }
  }
}

// Each stage of a plan keeps, moves or runs again, and the bits are the same. The loss behind a
// last stage that offloads moves as well.
TEST_F(PipelineTest, APlanSaysWhatEachStageKeeps) {
  const Trained plain = train("--microbatches 4");
  const std::string file = folder_.path("pipeline.plan"), log = folder_.path("decisions");
  StagedPlan plan;
  plan.program = "gpt";
  plan.schedule = ScheduleKind::kInterleaved;
  plan.devices = 2;
  plan.microbatches = 4;
  plan.options = {{"bytes_min", 64}, {"window_bytes", 4096}, {"prefetch_bytes", 4096}};
  plan.stages = {{2, "begin", "h.0", StagePolicy::kKeep},
                 {1, "h.1", "h.1", StagePolicy::kOffload},
                 {1, "h.2", "h.2", StagePolicy::kCheckpoint},
                 {1, "end", "end", StagePolicy::kCheckpointOffload}};
  write_plan(file, plan);
  const std::string planned = "--microbatches 4 --stages 4 --plan " + file + " --decisions " + log;
  expect_same(plain, planned);
  const std::int64_t moved = train(planned).moved_bytes;
  EXPECT_GT(moved, 0);

  plan.stages[3].policy = StagePolicy::kOffload;
  write_plan(file, plan);
  expect_same(plain, planned);
  EXPECT_GT(train(planned).moved_bytes, moved) << "the loss's, not the input alone";

  plan.stages[1].policy = plan.stages[3].policy = StagePolicy::kCheckpoint;
  write_plan(file, plan);
  expect_same(plain, planned);
  EXPECT_EQ(train(planned).moved_bytes, 0);
}

// One thread decides for a device: its log is the same bytes each time.
TEST_F(PipelineTest, EachDeviceOfAPlanHasItsDecisions) {
  const std::string file = folder_.path("pipeline.plan"), log = folder_.path("decisions");
  StagedPlan plan;
  plan.program = "gpt";
  plan.devices = 2;
  plan.microbatches = 2;
  plan.options = {{"bytes_min", 64}};
  plan.stages = {{3, "begin", "h.1", StagePolicy::kKeep}, {2, "h.2", "end", StagePolicy::kOffload}};
  write_plan(file, plan);
  const std::string run =
      "gpt --layers 3 --width 16 --heads 2 --context 16 --batch 12 --steps 2 "
      "--microbatches 2 --stages 2 --data " +
      folder_.text() + " --plan " + file + " --decisions " + log;
  const test::Result first = test::ferry_train(run);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_FALSE(std::filesystem::exists(log + ".0")) << "device 0 moves nothing";
  const std::string text = read_file(log + ".1");
  const DecisionLog decisions = parse_decision_log(text, log);
  EXPECT_EQ(decisions.options.min_bytes, 64);
  ASSERT_FALSE(decisions.decisions.empty());
  EXPECT_EQ(decisions.decisions.back().run, 4u) << "two micro-batches a step";
  EXPECT_EQ(test::ferry_train(run).code, 0);
  EXPECT_EQ(read_file(log + ".1"), text);
}

TEST_F(PipelineTest, APlanThatIsForAnotherTrainingIsRefused) {
  const std::string file = folder_.path("pipeline.plan");
  StagedPlan plan;
  plan.program = "gpt";
  plan.devices = 2;
  plan.microbatches = 4;
  plan.stages = {{2, "begin", "h.0", StagePolicy::kKeep}, {3, "h.1", "end", StagePolicy::kKeep}};
  const auto refused = [&](const std::string& arguments) {
    write_plan(file, plan);
    const std::string planned = arguments + " --plan " + file;
    return message([&] { make_workload(parse(planned)); });
  };
  EXPECT_EQ(refused("--microbatches 4 --stages 2"), "none");
  EXPECT_EQ(refused("--microbatches 4 --stages 3"),
            file + ": the plan is for 2 stages, and --stages says 3");
  EXPECT_EQ(refused("--microbatches 2 --stages 2"),
            file + ": the plan is for 4 micro-batches, and --microbatches says 2");
  EXPECT_EQ(refused("--microbatches 4 --stages 2 --schedule 1f1b"),
            "--schedule: expected with no --plan, which has its own");
  EXPECT_EQ(refused("--microbatches 4 --stages 2 --policy mixed"),
            "--policy: expected with no plan for --stages, which has one for each stage");
  plan.program = "llama";
  EXPECT_EQ(refused("--microbatches 4 --stages 2"),
            file +
                ": the plan is for a program called 'llama': expected a plan for a capture of "
                "`ferry train gpt`");
  plan.program = "gpt";
  plan.options = {{"luck", 1}};
  EXPECT_EQ(refused("--microbatches 4 --stages 2"),
            file + ": no option of the offloader is called 'luck'");
  plan.stages[1].units = 4;
  EXPECT_EQ(refused("--microbatches 4 --stages 2"),
            file +
                ": the plan's program has 6 units, and this model 5 layers: the embedding, 3 "
                "blocks, the head");
}

TEST_F(PipelineTest, AStateFitsBoth) {
  const std::string gpt =
      "gpt --layers 2 --width 16 --heads 2 --context 16 --batch 4 --microbatches 2 --json --data " +
      folder_.text() + " --save " + folder_.path("state");
  const auto losses = [](const test::Result& result) {
    EXPECT_EQ(result.code, 0) << result.err;
    std::vector<std::string> all;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) {
      all.push_back(line.substr(0, line.find("\"seconds\"")));
    }
    return all;
  };
  const auto whole = losses(test::ferry_train(gpt + " --steps 6"));
  auto parts = losses(test::ferry_train(gpt + " --steps 2 --stages 2"));
  for (const char* rest : {" --steps 4", " --steps 6 --stages 4 --schedule interleaved"}) {
    const auto more = losses(test::ferry_train(gpt + rest + " --resume " + folder_.path("state")));
    parts.insert(parts.end(), more.begin(), more.end());
  }
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(make_workload(parse("--microbatches 2"))->identity(),
            make_workload(parse("--microbatches 2 --stages 2"))->identity());
  EXPECT_NE(make_workload(parse("--microbatches 2"))->identity(),
            make_workload(parse(""))->identity());
}

TEST_F(PipelineTest, WhatMakesNoSense) {
  const auto refused = [&](const std::string& arguments) {
    EXPECT_THROW(parse(arguments), InputError) << arguments;
    return message([&] { parse(arguments); });
  };
  EXPECT_EQ(refused("--microbatches 5"),
            "--microbatches: expected a divisor of --batch 12, found 5");
  EXPECT_EQ(refused("--stages 6"),
            "--stages: expected no more than 5: the embedding, 3 blocks, the head");
  EXPECT_EQ(refused("--schedule gpipe"), "--schedule: expected with --stages N");
  EXPECT_EQ(refused("--pipe-checkpoint always"), "--pipe-checkpoint: expected with --stages N");
  EXPECT_EQ(refused("--stages 2 --stages-per-device 2"),
            "--stages-per-device: expected with --schedule interleaved");
  EXPECT_EQ(refused("--stages 3 --schedule interleaved"),
            "--stages: expected a multiple of --stages-per-device 2");
  EXPECT_EQ(
      refused("--stages 4 --schedule interleaved --microbatches 3"),
      "--microbatches: expected a multiple of 2 with --schedule interleaved, which puts 4 stages "
      "on 2 devices");
  EXPECT_NE(refused("--stages 2 --dropout 0.1").find("in no order"), std::string::npos);
  EXPECT_EQ(refused("--stages 2 --capture out.jsonl"),
            "--capture: expected with no --stages: it supports one thread only");
  EXPECT_EQ(refused("--stages 2 --policy offload --trace out.json"),
            "--trace: expected with no --stages: it supports one thread only");
  EXPECT_NE(refused("--microbatches 2 --capture out.jsonl").find("--microbatches 1"),
            std::string::npos);
  EXPECT_EQ(test::ferry_train("resnet --stages 2").code, 2) << "a ResNet has none";
}

}  // namespace
}  // namespace ferry::real::train
