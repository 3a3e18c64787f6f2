// The errors of checkpoints, word by word: users find them by these, as they find PyTorch's.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "shared/checkpoint/errors.h"

namespace ferry {
namespace {

using Ops = std::vector<std::string>;

const std::string kTip =
    "\nTip: to see a more detailed error message, pass `debug(true)` to `ferry::checkpoint`, or "
    "wrap the code with `ferry::CheckpointDebugGuard guard(true);`.\n";

TEST(CheckpointErrorsTest, AnotherNumberOfSaves) {
  EXPECT_EQ(checkpoint_text::fewer(3, 2),
            "ferry::checkpoint: A different number of tensors was saved during the original "
            "forward and recomputation.\nNumber of tensors saved during forward: 3\nNumber of "
            "tensors saved during recomputation: 2." +
                kTip);
  EXPECT_EQ(checkpoint_text::more(),
            "ferry::checkpoint: trying to save more tensors during recomputation than during the "
            "original forward pass." +
                kTip);
}

TEST(CheckpointErrorsTest, OtherMetadata) {
  EXPECT_EQ(checkpoint_text::different({{1, "f32 [2]", "f32 [3]"}, {4, "f32 [2]", "f16 [2]"}}),
            "ferry::checkpoint: Recomputed values for the following tensors have different "
            "metadata than during the forward pass.\n"
            "tensor at position 1:\nsaved metadata: f32 [2]\nrecomputed metadata: f32 [3]\n"
            "tensor at position 4:\nsaved metadata: f32 [2]\nrecomputed metadata: f16 [2]." +
                kTip);
}

TEST(CheckpointErrorsTest, OtherOutputs) {
  EXPECT_EQ(checkpoint_text::outputs(2, 1),
            "ferry::checkpoint: the function returned 2 tensors in the original forward, and 1 in "
            "recomputation.");
}

TEST(CheckpointErrorsTest, AStopIsForOneRun) {
  const int run = 0;
  const int other = 0;
  const StopRecomputation stop(&run);
  EXPECT_TRUE(stop.is_for(&run));
  EXPECT_FALSE(stop.is_for(&other));
}

TEST(CheckpointErrorsTest, DebugModeListsTheOpsOfBoth) {
  EXPECT_EQ(checkpoint_text::debug("Why.", {"mm", "exp", "sum"}, {"mm", "tanh"}),
            R"(ERROR: Detected non-determinism while running activation checkpointing

Why.

First op that differs (number 1):
  forward:   exp
  recompute: tanh

Operations of the original forward (3 ops):
  mm
  exp
  sum

Operations of the recomputation (2 ops):
  mm
  tanh

You are seeing this error because you passed `debug(true)` to ferry::checkpoint, or a )"
            "ferry::CheckpointDebugGuard is in force.\n");
}

// The first `count`. The others' bytes are still there, and must not be read.
Ops first(std::size_t count, Ops ops) {
  ops.resize(count);
  return ops;
}

// What debug mode says of the two lists, above the lists.
std::string verdict(const Ops& forward, const Ops& recompute) {
  const std::string text = checkpoint_text::debug("Why.", forward, recompute);
  const std::size_t begin = text.find("Why.\n\n") + 6;
  return text.substr(begin, text.find("\nOperations of the original forward") - begin);
}

TEST(CheckpointErrorsTest, DebugModeNamesTheFirstOpThatDiffers) {
  const Ops ops = {"mm", "exp", "sum"};
  EXPECT_EQ(verdict(first(2, ops), first(2, ops)),
            "The 2 ops of forward and of recomputation are the same.\n");
  EXPECT_EQ(verdict({}, {}), "The 0 ops of forward and of recomputation are the same.\n");
  EXPECT_EQ(verdict({"mm", "exp", "sum"}, {"mm", "tanh", "sum"}),
            "First op that differs (number 1):\n  forward:   exp\n  recompute: tanh\n");
  EXPECT_EQ(verdict(first(2, ops), ops),
            "First op that differs (number 2):\n  forward:   (no op)\n  recompute: sum\n");
  EXPECT_EQ(verdict(ops, first(2, ops)),
            "First op that differs (number 2):\n  forward:   sum\n  recompute: (no op)\n");
}

}  // namespace
}  // namespace ferry
