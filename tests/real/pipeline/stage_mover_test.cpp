// What each stage keeps for backward, where that is said stage by stage: the gradients are the same
// bits, and what runs again and what moves is what was said.
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "ferry/pipe.h"
#include "tests/real/api/message.h"
#include "tests/real/pipeline/rig.h"

namespace ferry {
namespace {

struct Stepped {
  Tensors gradients;
  std::vector<int> forwards;  // by layer
  std::map<std::size_t, OffloadStatistics> moved;
};

// Three layers in three stages, and three micro-batches of two rows.
Stepped stepped(const std::vector<StagePolicy>& policies,
                CheckpointMode mode = CheckpointMode::kAlways) {
  Stepped result{{}, std::vector<int>(3), {}};
  torch::nn::Sequential layers;
  for (int i = 0; i < 3; ++i) {
    layers->push_back(
        Scale(i, [&count = result.forwards[static_cast<std::size_t>(i)]] { ++count; }));
  }
  Pipe pipe(layers, PipeOptions()
                        .balance({1, 1, 1})
                        .microbatches(3)
                        .checkpoint(mode)
                        .stage_policies(policies)
                        .offload(OffloadOptions().min_bytes(0).window(0)));
  const auto square = [](const Tensor& y, const Tensor& target) {
    return (y * y * target).sum();  // saves
  };
  pipe.step(batch(6).requires_grad_(), batch(6), square);
  for (const Tensor& parameter : layers->parameters()) result.gradients.push_back(parameter.grad());
  for (const auto& [device, offload] : pipe.offloads()) {
    EXPECT_TRUE(offload.empty()) << device;
    result.moved.emplace(device, offload.statistics());
  }
  return result;
}

void expect_same(const Stepped& a, const Stepped& b) {
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    EXPECT_TRUE(a.gradients[i].equal(b.gradients[i])) << i;
  }
}

using enum StagePolicy;

TEST(StageMoverTest, EachStageRunsAgainOrNot) {
  const Stepped plain = stepped({}, CheckpointMode::kNever);
  EXPECT_EQ(plain.forwards, (std::vector<int>{3, 3, 3}));
  const Stepped some = stepped({kCheckpoint, kKeep, kCheckpoint});
  expect_same(some, plain);
  EXPECT_EQ(some.forwards, (std::vector<int>{6, 3, 6}));
  EXPECT_TRUE(some.moved.empty());
  EXPECT_EQ(stepped({kCheckpoint, kKeep, kCheckpoint}, CheckpointMode::kExceptLast).forwards,
            (std::vector<int>{5, 3, 5}));
}

TEST(StageMoverTest, WhatAStageSavesMovesOnItsDevice) {
  const Stepped plain = stepped({}, CheckpointMode::kNever);
  const Stepped moved = stepped({kKeep, kOffload, kKeep});
  expect_same(moved, plain);
  ASSERT_EQ(moved.moved.size(), 1u);
  // Of each micro-batch the layer's input; its weight stays.
  EXPECT_EQ(moved.moved.at(1).offloaded_count, 3);
  EXPECT_EQ(moved.moved.at(1).offloaded_bytes, 3 * 2 * 3 * 8);
  // Behind the last stage the loss, which saves its output, and the product.
  const Stepped last = stepped({kKeep, kKeep, kOffload});
  expect_same(last, plain);
  EXPECT_GT(last.moved.at(2).offloaded_count, 3);
}

TEST(StageMoverTest, OfAStageThatRunsAgainTheInputMoves) {
  const Stepped plain = stepped({}, CheckpointMode::kNever);
  const Stepped moved = stepped({kKeep, kCheckpointOffload, kKeep});
  expect_same(moved, plain);
  EXPECT_EQ(moved.forwards, (std::vector<int>{3, 6, 3}));
  EXPECT_EQ(moved.moved.at(1).offloaded_bytes, 3 * 2 * 3 * 8);
  // Nobody else holds them: what runs again reads what came back from the host. But the last
  // micro-batch's are read before another save pushes them out of the window.
  EXPECT_EQ(moved.moved.at(1).reloaded_bytes, 2 * 2 * 3 * 8);
}

TEST(StageMoverTest, AsManyPoliciesAsStages) {
  EXPECT_THROW(stepped({kKeep}), ValueError);
  EXPECT_EQ(message([] { stepped({kKeep}); }),
            "ferry::Pipe: expected stage_policies for each of 3 stages, found 1");
}

}  // namespace
}  // namespace ferry
