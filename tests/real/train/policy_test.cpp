// Whatever moves and whatever is computed twice, what is trained is the same to the bit: losses,
// weights, and the buffers that a block updates when it runs.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "formats/error.h"
#include "formats/plan_file.h"
#include "real/train/memory.h"
#include "real/train/options.h"
#include "real/train/policy.h"
#include "real/train/workload.h"
#include "tests/real/train/child.h"

namespace ferry::real::train {
namespace {

struct Trained {
  std::vector<float> losses;
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> buffers;
  std::int64_t peak_bytes = 0;  // of the last step
  std::int64_t recomputes = 0;
};

Trained train(const Options& options) {
  const auto workload = make_workload(options);
  workload->module().train();
  torch::optim::AdamW optimizer(workload->module().parameters(),
                                torch::optim::AdamWOptions(options.learning_rate));
  Policy policy(options, *workload);
  Trained trained;
  const std::int64_t before = checkpoint_statistics().recomputes;
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const StepMemory memory{c10::Device(c10::kCPU)};
    {
      const auto guard = policy.guard();
      const torch::Tensor loss = workload->loss(workload->batch(step));
      loss.backward();
      trained.losses.push_back(loss.item<float>());
    }
    optimizer.step();
    optimizer.zero_grad();
    policy.end_step();
    trained.peak_bytes = memory.peak_bytes();
  }
  trained.recomputes = checkpoint_statistics().recomputes - before;
  trained.parameters = workload->module().parameters();
  trained.buffers = workload->module().buffers();
  return trained;
}

::testing::AssertionResult same(const std::vector<torch::Tensor>& a,
                                const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << ", " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].equal(b[i])) return ::testing::AssertionFailure() << "number " << i << " differs";
  }
  return ::testing::AssertionSuccess();
}

class PoliciesTest : public ::testing::Test {
 protected:
  // Three steps; both have three blocks.
  std::string gpt() const {
    return "gpt --layers 3 --width 32 --heads 2 --context 32 --batch 2 --dropout 0.2 --steps 3 "
           "--data " +
           folder_.text() + " ";
  }
  static std::string resnet() {
    return "resnet --layers 1 --width 8 --batch 4 --images 20 --steps 3 ";
  }

  static void expect_same(const Trained& keep, const Trained& other) {
    EXPECT_EQ(keep.losses, other.losses);
    EXPECT_TRUE(same(keep.parameters, other.parameters));
    EXPECT_TRUE(same(keep.buffers, other.buffers));
  }

  test::Folder folder_;
};

TEST_F(PoliciesTest, TrainTheSameBits) {
  const std::string tight = " --window 0 --min-bytes 0 ";
  for (const std::string& model : {gpt(), resnet()}) {
    const Trained keep = train(test::parse(model));
    EXPECT_EQ(keep.recomputes, 0);
    expect_same(keep, train(test::parse(model + "--policy offload" + tight)));
    const Trained checkpoint = train(test::parse(model + "--policy checkpoint"));
    expect_same(keep, checkpoint);
    EXPECT_EQ(checkpoint.recomputes, 3 * 3);
    // The first and the third.
    const Trained mixed = train(test::parse(model + "--policy mixed" + tight));
    expect_same(keep, mixed);
    EXPECT_EQ(mixed.recomputes, 3 * 2);
    expect_same(
        keep, train(test::parse(model + "--policy mixed" + tight + "--disk " + folder_.path(""))));
  }
}

// A recompute that updated them again would count each batch twice.
TEST_F(PoliciesTest, RunningStatisticsAreOfEachBatchOnce) {
  for (const char* policy : {"keep", "checkpoint", "mixed"}) {
    const Trained trained = train(test::parse(resnet() + "--policy " + policy));
    for (const torch::Tensor& buffer : trained.buffers) {
      if (buffer.dim() > 0) continue;
      EXPECT_EQ(buffer.item<std::int64_t>(), 3) << policy;
    }
  }
}

TEST_F(PoliciesTest, RecomputingLowersThePeak) {
  const std::string model =
      "gpt --layers 6 --width 32 --heads 2 --context 64 --batch 8 --steps 2 --data " +
      folder_.text() + " ";
  const std::int64_t keep = train(test::parse(model)).peak_bytes;
  const std::int64_t checkpoint = train(test::parse(model + "--policy checkpoint")).peak_bytes;
  EXPECT_LT(checkpoint, keep / 2);
  EXPECT_LT(train(test::parse(model + "--policy mixed --window 64KiB --prefetch 64KiB")).peak_bytes,
            keep * 6 / 10);
}

// What is asked for, and what the models make of it.
TEST_F(PoliciesTest, SegmentsAreThePolicys) {
  const auto segments = [&](const std::string& policy) {
    const Options options = test::parse(gpt() + policy);
    EXPECT_EQ(options.resnet.segments, options.gpt.segments) << policy;
    return options.gpt.segments;
  };
  EXPECT_EQ(segments(""), Segments::kPlain);
  EXPECT_EQ(segments("--policy offload"), Segments::kPlain);
  EXPECT_EQ(segments("--policy checkpoint"), Segments::kAll);
  EXPECT_EQ(segments("--policy mixed"), Segments::kAlternate);
  EXPECT_EQ(segments("--capture a.jsonl"), Segments::kAll);
  EXPECT_EQ(segments("--capture a.jsonl --plain"), Segments::kPlain);
  Plan plan;
  write_plan(folder_.path("blocks.plan"), plan);
  plan.spans = {{.first = 1, .last = 2}};
  write_plan(folder_.path("spans.plan"), plan);
  for (const std::string policy : {"mixed", "offload-some"}) {
    const std::string planned = "--policy " + policy + " --plan ";
    EXPECT_EQ(segments(planned + folder_.path("blocks.plan")), Segments::kAll);
    EXPECT_EQ(segments(planned + folder_.path("spans.plan")), Segments::kPlain);
  }
}

// The whole message, as it stands on the terminal after "ferry: ".
TEST_F(PoliciesTest, OptionsThatContradictThePolicyAreRefused) {
  const char* const moving = ": expected with --policy offload, offload-some or mixed";
  const char* const freely = ": expected with --policy offload, or mixed without a plan";
  const char* const planned = ": expected with --policy offload-some or mixed, or --stages N";
  const struct {
    const char* arguments;
    std::string message;
  } cases[] = {
      {"--decisions a", std::string("--decisions") + moving},
      {"--policy checkpoint --decisions a", std::string("--decisions") + moving},
      {"--policy checkpoint --trace a", std::string("--trace") + moving},
      {"--policy checkpoint --disk /tmp", std::string("--disk") + moving},
      {"--policy checkpoint --window 1MiB", std::string("--window") + freely},
      {"--policy checkpoint --prefetch 1MiB", std::string("--prefetch") + freely},
      {"--policy checkpoint --min-bytes 1MiB", std::string("--min-bytes") + freely},
      {"--policy checkpoint --plan a", std::string("--plan") + planned},
      {"--policy offload --plan a", std::string("--plan") + planned},
      {"--plan a", std::string("--plan") + planned},
      {"--policy mixed --plan a --window 1MiB", std::string("--window") + freely},
      {"--policy offload-some --plan a --prefetch 1MiB", std::string("--prefetch") + freely},
      {"--policy mixed --plan a --min-bytes 1KiB", std::string("--min-bytes") + freely},
  };
  for (const auto& [arguments, message] : cases) {
    try {
      test::parse(gpt() + arguments);
      ADD_FAILURE() << arguments << " is taken";
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), message) << arguments;
    }
  }
  for (const char* policy : {"checkpoint", "mixed", "offload"}) {
    EXPECT_THROW(test::parse(gpt() + "--capture a --policy " + policy), InputError) << policy;
  }
  const std::string plan = folder_.path("a.plan");
  EXPECT_THROW(test::parse(gpt() + "--policy mixed --plan " + plan), InputError);
  write_plan(plan, {});
  EXPECT_NO_THROW(test::parse(gpt() + "--policy mixed --log b --decisions d --trace c --disk /tmp" +
                              " --plan " + plan));
  EXPECT_THROW(test::parse(gpt() + "--plain"), InputError);
  EXPECT_NO_THROW(test::parse(gpt() + "--log a"));
  EXPECT_THROW(test::parse(gpt() + "--capture a --log b"), InputError);
  EXPECT_NO_THROW(test::parse(gpt() + "--policy mixed --window 0 --prefetch 0 --min-bytes 0"));
  EXPECT_NO_THROW(test::parse(gpt() + "--policy checkpoint --save a --save-every 2 --json"));
}

}  // namespace
}  // namespace ferry::real::train
