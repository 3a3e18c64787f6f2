// A training is captured, planned for, and trains by its plan: the simulator decides as it did.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cli/console/exit_codes.h"
#include "formats/decision_log.h"
#include "formats/text_file.h"
#include "tests/real/train/program.h"

namespace ferry::real::train {
namespace {

using test::lines;
using test::losses;
using test::ProgramTest;
using test::Result;

// Capture, plan, train by the plan, and the simulator decides as the training did.
TEST_F(ProgramTest, APlanFromItsOwnCaptureIsExecutedAndReplayed) {
  const std::string program = folder_.path("gpt.jsonl"), plan = folder_.path("gpt.plan"),
                    log = folder_.path("gpt.log");
  EXPECT_EQ(test::ferry_train(gpt() + "--capture " + program).code, kOk);
  const Result planned = test::run(
      {FERRY_PROGRAM, "plan", program, "--card", "rtx4090", "--policy", "offload", "-o", plan});
  ASSERT_EQ(planned.code, kOk) << planned.err;
  const std::vector<std::string> keep = losses(test::ferry_train(gpt() + "--steps 3 --json"));
  const std::string budget = "--policy offload-some --plan " + plan + " --decisions " + log;
  const Result trained = test::ferry_train(gpt() + "--steps 3 --json " + budget);
  EXPECT_EQ(losses(trained), keep);
  EXPECT_GT(lines(trained.out)[2]["moved_bytes"], 1000);
  const Result replayed = test::run({FERRY_PROGRAM, "replay", program, "--decisions", log});
  EXPECT_EQ(replayed.code, kOk) << replayed.out;
  EXPECT_TRUE(replayed.out.starts_with("the same: 3 runs of ")) << replayed.out;
  // Another model than the plan's.
  const Result other =
      test::ferry_train(resnet() + "--steps 1 --policy offload-some --plan " + plan);
  EXPECT_EQ(other.code, kUsage);
  EXPECT_NE(other.err.find("does not match the plan at saved tensor "), std::string::npos);
}

// Captures of LibTorch's could not be cut into stages, and nobody executed a pipeline's plan.
class PipelinesPlanTest : public ProgramTest {
 protected:
  PipelinesPlanTest() {
    EXPECT_EQ(test::ferry_train(staged_gpt(2) + "--capture " + program_).code, kOk);
  }
  std::string staged_gpt(int batch) const {
    return "gpt --layers 3 --width 32 --heads 2 --context 32 --threads 1 --data " + folder_.text() +
           " --batch " + std::to_string(batch) + " ";
  }
  // For two devices and four micro-batches.
  void plan(const std::string& schedule, const std::string& policy) const {
    const Result planned =
        test::run({FERRY_PROGRAM, "plan", program_, "--card", "rtx4090", "--stages", "2",
                   "--microbatches", "4", "--schedule", schedule, "--policy", policy, "-o", plan_});
    ASSERT_EQ(planned.code, kOk) << planned.err;
  }
  Result train(const std::string& arguments) const {
    return test::ferry_train(staged_gpt(8) + "--steps 2 --json --microbatches 4 " + arguments);
  }
  Result train_by_plan(int stages) const {
    return train("--stages " + std::to_string(stages) + " --plan " + plan_);
  }

  const std::string program_ = folder_.path("gpt.jsonl"), plan_ = folder_.path("gpt.plan");
};

TEST_F(PipelinesPlanTest, OfItsOwnCaptureItIsExecuted) {
  const std::vector<std::string> plain = losses(train(""));
  plan("1f1b", "checkpoint");
  EXPECT_EQ(losses(train_by_plan(2)), plain);
  plan("interleaved", "per-stage");
  EXPECT_EQ(losses(train_by_plan(4)), plain);
  plan("interleaved", "offload");
  const Result moved = train_by_plan(4);
  EXPECT_EQ(losses(moved), plain);
  const auto steps = lines(moved.out);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_GT(steps[1]["moved_bytes"], 1000);
}

TEST_F(PipelinesPlanTest, EachKindOfPlanIsRefusedWhereTheOtherIsExpected) {
  const auto expect_refused = [&](const Result& result, const std::string& text) {
    EXPECT_EQ(result.code, kUsage);
    EXPECT_NE(result.err.find(plan_ + text), std::string::npos) << result.err;
  };
  plan("1f1b", "offload");
  expect_refused(train_by_plan(3), ": the plan is for 2 stages, and --stages says 3");
  expect_refused(train("--policy offload-some --plan " + plan_),
                 ":1: expected a plan: {\"ferry\":\"plan\",\"schema\":1,…}; this is a pipeline's");
  ASSERT_EQ(test::run({FERRY_PROGRAM, "plan", program_, "--card", "rtx4090", "--policy", "offload",
                       "-o", plan_})
                .code,
            kOk);
  expect_refused(train_by_plan(2), ":1: expected a plan of `ferry plan --stages`: ");
}

// The same with recomputed blocks. Nothing fits without them: the card's link is slow, and its
// memory small.
class RecomputingPlanTest : public ProgramTest {
 protected:
  RecomputingPlanTest() {
    const std::string card = read_file(FERRY_SOURCE_DIR "/scenarios/hardware/rtx4090.toml");
    folder_.write("slow.toml", card.substr(0, card.find("[link]")) + R"([link]
h2d = "1MB/s"
d2h = "1MB/s"
h2d_both = "1MB/s"
d2h_both = "1MB/s"
latency = "8us"
)");
    const Result captured = test::ferry_train(gpt(4) + "--capture " + program_);
    EXPECT_EQ(captured.code, kOk) << captured.err;
  }

  std::string gpt(int layers) const {
    return "gpt --layers " + std::to_string(layers) +
           " --width 64 --heads 2 --context 64 --batch 8 --dropout 0.1 --threads 1 --data " +
           folder_.text() + " ";
  }
  void plan(const std::string& policy, const std::string& budget) const {
    const Result planned =
        test::run({FERRY_PROGRAM, "plan", program_, "--card", folder_.path("slow.toml"), "--policy",
                   policy, "--budget", budget, "-o", plan_,
                   // The budgets are of the step alone.
                   "--optimizer", "none", "--steps", "1", "--cublas-workspace-config", ":0:0"});
    ASSERT_EQ(planned.code, kOk) << planned.out << planned.err;
  }
  std::string planned(int layers, const char* policy) const {
    return gpt(layers) + "--steps 3 --json --policy " + policy + " --plan " + plan_ + " ";
  }
  Result replay() const {
    return test::run({FERRY_PROGRAM, "replay", program_, "--decisions", log_, "--plan", plan_});
  }

  const std::string program_ = folder_.path("gpt.jsonl");
  const std::string plan_ = folder_.path("gpt.plan");
  const std::string log_ = folder_.path("gpt.log");
};

TEST_F(RecomputingPlanTest, IsExecutedAndReplayed) {
  const Result kept = test::ferry_train(gpt(4) + "--steps 3 --json");
  const std::vector<std::string> keep = losses(kept);
  const auto peak = [](const Result& result) {
    return lines(result.out).back()["peak_bytes"].get<std::int64_t>();
  };
  for (const auto& [policy, budget, moved, train] :
       {std::tuple("mixed", "8MiB", 0, "mixed"),
        std::tuple("checkpoint-offload", "8MiB", 1, "mixed"),
        std::tuple("checkpoint-nth", "10MiB", 0, "offload-some")}) {
    plan(policy, budget);
    const Result trained = test::ferry_train(planned(4, train) + "--decisions " + log_);
    EXPECT_EQ(losses(trained), keep) << policy;
    EXPECT_LT(peak(trained), peak(kept) * 7 / 10) << policy;
    std::map<DecisionKind, int> decisions;
    for (const Decision& decision : read_decision_log(log_).decisions) ++decisions[decision.kind];
    EXPECT_GE(decisions[DecisionKind::kRecompute], 3) << policy;
    EXPECT_EQ(decisions[DecisionKind::kRecompute] % 3, 0) << policy;
    EXPECT_GE(decisions[DecisionKind::kPack], 3 * moved) << policy;
    const Result replayed = replay();
    EXPECT_EQ(replayed.code, kOk) << policy << "\n" << replayed.out << replayed.err;
    EXPECT_TRUE(replayed.out.starts_with("the same: 3 runs of ")) << replayed.out;
  }
}

// Of any operators, in blocks that are no checkpoints.
TEST_F(RecomputingPlanTest, SpansOfOperatorsAreExecutedAndReplayed) {
  ASSERT_EQ(test::ferry_train(gpt(4) + "--plain --capture " + program_).code, kOk);
  const Result kept = test::ferry_train(gpt(4) + "--steps 3 --json");
  const auto peak = [](const Result& result) {
    return lines(result.out).back()["peak_bytes"].get<std::int64_t>();
  };
  plan("best", "8MiB");
  const std::string made = read_file(plan_);
  EXPECT_NE(made.find("\"spans\""), std::string::npos);
  EXPECT_EQ(made.find("\"segments\""), std::string::npos);
  for (const char* const policy : {"offload-some", "mixed"}) {
    const Result trained = test::ferry_train(planned(4, policy) + "--decisions " + log_);
    EXPECT_EQ(losses(trained), losses(kept));
    EXPECT_LT(peak(trained), peak(kept) * 7 / 10);
    const Result replayed = replay();
    EXPECT_EQ(replayed.code, kOk) << replayed.out << replayed.err;
    EXPECT_TRUE(replayed.out.starts_with("the same: ")) << replayed.out;
  }
  expect_refused(planned(3, "mixed"), kUsage, "the model does not match the plan at ");
}

TEST_F(RecomputingPlanTest, ARecomputeThatIsNotTheSimulatedOneDiffers) {
  plan("checkpoint-offload", "8MiB");
  EXPECT_EQ(test::ferry_train(planned(4, "mixed") + "--decisions " + log_).code, kOk);
  const DecisionLog log = read_decision_log(log_);
  const auto second = std::find_if(
      log.decisions.begin(), log.decisions.end(),
      [](const auto& each) { return each.kind == DecisionKind::kRecompute && each.run == 2; });
  ASSERT_NE(second, log.decisions.end());
  const std::size_t at = static_cast<std::size_t>(second - log.decisions.begin());
  const auto expect_different = [&](const DecisionLog& changed, const std::string& real) {
    write_decision_log(log_, changed);
    const Result replayed = replay();
    EXPECT_EQ(replayed.code, cli::kDiffers);
    EXPECT_TRUE(replayed.out.starts_with("different: run 2, decision ")) << replayed.out;
    EXPECT_NE(replayed.out.find("> real       " + real), std::string::npos) << replayed.out;
    EXPECT_NE(replayed.out.find("> simulated  recompute of segment 3 (checkpoint.3)"),
              std::string::npos)
        << replayed.out;
  };
  DecisionLog changed = log;
  changed.decisions[at].pack = 1;  // backward comes to the last one first
  expect_different(changed, "recompute of segment 1 (checkpoint.1)");
  changed = log;  // what follows it comes in its place
  changed.decisions.erase(changed.decisions.begin() + static_cast<std::ptrdiff_t>(at));
  expect_different(changed, "recompute of segment 2 (checkpoint.2)");
}

TEST_F(RecomputingPlanTest, OfAnotherModelIsRefusedWithWhatDiffers) {
  plan("checkpoint", "8MiB");
  for (const int layers : {3, 5}) {
    expect_refused(planned(layers, "mixed"), kUsage,
                   "the model does not match the plan at saved tensor ");
  }
  // What reaches the offloader is the same; the blocks save fewer.
  std::string without = planned(4, "offload-some");
  without.replace(without.find("--dropout 0.1"), 13, "--dropout 0");
  expect_refused(without, kUsage, "ferry::checkpoint: the segment saved ");
}

}  // namespace
}  // namespace ferry::real::train
