// Plans with segments at work: which calls of ferry::checkpoint recompute, what they keep and pass
// on, what the log says of it, and how another model is refused.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <string>
#include <vector>

#include "ferry/checkpoint.h"
#include "ferry/offload.h"
#include "formats/plan.h"
#include "formats/plan_options.h"
#include "shared/checkpoint/errors.h"
#include "tests/real/api/message.h"

namespace ferry {
namespace {

using torch::Tensor;

std::vector<Decision> recomputes(const std::vector<Decision>& decisions) {
  std::vector<Decision> found;
  for (const Decision& decision : decisions) {
    if (decision.kind == DecisionKind::kRecompute) found.push_back(decision);
  }
  return found;
}

// Three calls in a row, of which the plan recomputes the first and the last. Each saves its input
// and its result, so the forward, as the offloader sees it, packs
//
//     x0   [x0 y1]   y1 y2   y2   [y2 y3]       (in brackets: in recomputed segments)
class SegmentsTest : public ::testing::Test {
 protected:
  SegmentsTest() {
    at::set_num_threads(1);
    CoreOptions options;
    options.min_bytes = 0;
    options.window_tensors = 1;
    plan_.options = plan_options(options);
    plan_.segments = {{"a", true}, {"b", false}, {"c", true}};
    add(0, "checkpoint", {}, PlanChoice::kOffload);
    add(0, "SinBackward0", 0, PlanChoice::kRecompute);
    add(1, "ExpBackward0", 0, PlanChoice::kKeep);
    add(1, "SinBackward0", {}, PlanChoice::kKeep);
    add(2, "ExpBackward0", {}, PlanChoice::kOffload);
    add(3, "checkpoint", {}, PlanChoice::kOffload);
    add(0, "SinBackward0", 2, PlanChoice::kOffload);
    add(1, "ExpBackward0", 2, PlanChoice::kRecompute);
    torch::manual_seed(3);
    x_ = torch::rand({4, 4}).requires_grad_();
    plain_.push_back(torch::autograd::grad({loss(false)}, {x_})[0]);
  }

  void add(std::uint64_t pack, const char* op, std::optional<std::uint64_t> segment,
           PlanChoice choice) {
    plan_.entries.push_back(
        {pack, op, Layout{DType::kF32, {4, 4}, {4, 1}, 0}, plan_.entries.size(), choice, segment});
  }

  Tensor call(std::size_t i, const Tensor& x) {
    if (calls_.size() <= i) calls_.resize(i + 1);
    return checkpoint(
        [this, i](const Tensor& in) {
          ++calls_[i];
          return in.sin().exp();
        },
        x);
  }
  Tensor loss(bool checkpointed, std::size_t calls = 3) {
    Tensor y = x_.clone();
    for (std::size_t i = 0; i < calls; ++i) y = checkpointed ? call(i, y) : y.sin().exp();
    return y.sum();
  }

  Plan plan_;
  Tensor x_;
  std::vector<Tensor> plain_;
  std::vector<int> calls_ = std::vector<int>(3);
};

TEST_F(SegmentsTest, ThePlanSaysWhichCallsRecomputeAndWhatTheyKeep) {
  Offload offload(plan_, OffloadOptions());
  const CheckpointStatistics before = checkpoint_statistics();
  for (int step = 1; step <= 3; ++step) {
    {
      const OffloadGuard guard(offload);
      EXPECT_TRUE(torch::autograd::grad({loss(true)}, {x_})[0].equal(plain_[0]));
    }
    EXPECT_EQ(calls_, (std::vector<int>{2 * step, step, 2 * step}));
  }
  const CheckpointStatistics after = checkpoint_statistics();
  EXPECT_EQ(after.segments - before.segments, 3 * 2);
  EXPECT_EQ(after.recomputes - before.recomputes, 3 * 2);
  EXPECT_EQ(after.saved - before.saved, 3 * 2);
  EXPECT_EQ(after.kept - before.kept, 3 * 1);
  EXPECT_EQ(after.passed_on - before.passed_on, 3 * 1);
  EXPECT_EQ(after.alive, before.alive);
  // Four of the forward, and the one that is passed on; y2 moves once for all.
  const OffloadStatistics statistics = offload.statistics();
  EXPECT_EQ(statistics.packs, 3 * (4 + 1));
  EXPECT_EQ(statistics.offloaded_count, 3 * 2);
  EXPECT_TRUE(offload.empty());
}

// In the order of backward; segments have the numbers of those that recompute.
TEST_F(SegmentsTest, RecomputesAreLoggedWithTheirRun) {
  Offload offload(plan_, OffloadOptions().decisions(true));
  for (int step = 0; step < 2; ++step) {
    const OffloadGuard guard(offload);
    loss(true).backward();
  }
  // Two forwards, and then their backwards.
  std::vector<Tensor> losses;
  for (int step = 0; step < 2; ++step) {
    const OffloadGuard guard(offload);
    losses.push_back(loss(true));
  }
  for (const Tensor& each : losses) each.backward();
  const auto of = [](std::uint64_t run, std::uint64_t segment) {
    return Decision{DecisionKind::kRecompute, run, segment, 0};
  };
  const std::vector<Decision> decisions = offload.take_decisions();
  EXPECT_EQ(recomputes(decisions), (std::vector<Decision>{of(1, 1), of(1, 0), of(2, 1), of(2, 0),
                                                          of(3, 1), of(3, 0), of(4, 1), of(4, 0)}));
  // Runs are the offloader's.
  std::uint64_t last = 0;
  for (const Decision& decision : decisions) {
    if (decision.kind == DecisionKind::kPack) last = decision.run;
  }
  EXPECT_EQ(last, 4u);
  EXPECT_TRUE(offload.take_decisions().empty());
}

TEST_F(SegmentsTest, WithoutAPlanEveryCallRecomputesAndIsLogged) {
  Offload offload(OffloadOptions().min_bytes(0).decisions(true));
  {
    const OffloadGuard guard(offload);
    loss(true).backward();
  }
  EXPECT_EQ(calls_, (std::vector<int>{2, 2, 2}));
  EXPECT_EQ(recomputes(offload.take_decisions()).size(), 3u);
  EXPECT_EQ(offload.statistics().packs, 3);
}

TEST_F(SegmentsTest, OutsideAGuardThereIsNoPlan) {
  Offload offload(plan_, OffloadOptions().decisions(true));
  loss(true).backward();
  EXPECT_EQ(calls_, (std::vector<int>{2, 2, 2}));
  EXPECT_TRUE(offload.take_decisions().empty());
}

TEST_F(SegmentsTest, CallsBeyondThePlanJustRun) {
  Offload offload(plan_, OffloadOptions());
  const OffloadGuard guard(offload);
  const Tensor y = loss(true);
  int calls = 0;
  checkpoint(
      [&calls](const Tensor& in) {
        ++calls;
        EXPECT_FALSE(is_checkpointing());
        return in + in;  // saves nothing
      },
      y)
      .backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(x_.grad().equal(2 * plain_[0]));
}

TEST_F(SegmentsTest, CallsInsideASegmentJustRun) {
  Offload offload(plan_, OffloadOptions());
  const OffloadGuard guard(offload);
  int inner = 0;
  Tensor y = x_.clone();
  const CheckpointStatistics before = checkpoint_statistics();
  for (int i = 0; i < 3; ++i) {
    y = checkpoint(
        [&inner](const Tensor& in) {
          return checkpoint(
              [&inner](const Tensor& x) {
                ++inner;
                return x.sin().exp();
              },
              in);
        },
        y);
  }
  EXPECT_TRUE(torch::autograd::grad({y.sum()}, {x_})[0].equal(plain_[0]));
  EXPECT_EQ(inner, 2 + 1 + 2);
  const CheckpointStatistics after = checkpoint_statistics();
  EXPECT_EQ(after.segments - before.segments, 2);
  EXPECT_EQ(after.recomputes - before.recomputes, 2);
}

TEST_F(SegmentsTest, ASegmentThatSavesMoreOrFewerThanPlannedIsRefused) {
  const auto refusal = [this](const Plan& plan) {
    Offload offload(plan, OffloadOptions());
    std::string text;
    try {
      const OffloadGuard guard(offload);
      loss(true);
    } catch (const SegmentMismatch& error) {
      text = error.what();
    }
    EXPECT_TRUE(offload.empty());
    // The next forward is judged by itself.
    try {
      const OffloadGuard guard(offload);
      loss(true);
    } catch (const SegmentMismatch& error) {
      EXPECT_EQ(error.what(), text);
    }
    return text;
  };
  Plan more = plan_;
  more.entries.push_back(more.entries.back());
  ++more.entries.back().pack;
  EXPECT_EQ(refusal(more),
            "ferry::checkpoint: the segment saved 2 tensors, and the plan in force has 3 for it");
  Plan fewer = plan_;
  fewer.entries.pop_back();
  EXPECT_EQ(refusal(fewer),
            "ferry::checkpoint: the segment saved 2 tensors, and the plan in force has 1 for it");
}

// What reaches the offloader out of a segment is held against the plan as the forward's own is.
TEST_F(SegmentsTest, ATensorThatIsNotThePlansIsNamedWithItsSegment) {
  Plan plan = plan_;
  plan.entries[6].layout.shape = {77, 4};
  {
    Offload offload(plan, OffloadOptions());
    const OffloadGuard guard(offload);
    EXPECT_EQ(message([&] { loss(true); }),
              "the model does not match the plan at saved tensor 0 of segment 2 (SinBackward0): "
              "the plan has f32 [77, 4] strides [4, 1], the model saves f32 [4, 4] strides [4, 1]");
  }
  plan = plan_;
  plan.entries[5].layout.dtype = DType::kF64;
  {
    Offload offload(plan, OffloadOptions());
    const OffloadGuard guard(offload);
    EXPECT_EQ(message([&] { loss(true); }),
              "the model does not match the plan at saved tensor 3 (checkpoint): the plan has f64 "
              "[4, 4] strides [4, 1], the model saves f32 [4, 4] strides [4, 1]");
  }
  Offload offload(plan_, OffloadOptions());
  {
    const OffloadGuard guard(offload);
    EXPECT_EQ(message([&] { loss(true, 4); }),
              "the model does not match the plan at saved tensor 5: the plan ends before it, the "
              "model saves f32 [4, 4]; one guard is one forward");
  }
  {
    const OffloadGuard guard(offload);
    loss(true, 2);
  }
  EXPECT_EQ(message([&] { const OffloadGuard guard(offload); }),
            "the model does not match the plan at saved tensor 3 (checkpoint): the last forward "
            "saved 3 tensors, the plan has 5");
}

TEST_F(SegmentsTest, APlanThatOnlyRecomputesMovesNothing) {
  for (PlanEntry& entry : plan_.entries) {
    if (entry.decision == PlanChoice::kOffload) entry.decision = PlanChoice::kKeep;
  }
  Offload offload(plan_, OffloadOptions());
  const OffloadGuard guard(offload);
  EXPECT_TRUE(torch::autograd::grad({loss(true)}, {x_})[0].equal(plain_[0]));
  EXPECT_EQ(offload.statistics().offloaded_count, 0);
  EXPECT_EQ(calls_, (std::vector<int>{2, 1, 2}));
}

}  // namespace
}  // namespace ferry
