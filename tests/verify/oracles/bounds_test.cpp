#include "verify/oracles/bounds.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/support/layers.h"

namespace ferry::verify {
namespace {

// A checkpoint within a checkpoint: each keeps what the inner one's op made.
TEST(Bounds, EachCheckpointKeepsItsOwn) {
  test::Layers p;
  const CodeId inner = p.segment_of({"a", "b"});
  const CodeId outer = p.segment();
  p.b.result(outer, p.call(outer, inner, {p.b.argument(outer)})[0]);
  p.backward(p.call(0, outer, {p.begin()})[0]);
  const Program program = p.take();
  EXPECT_EQ(outputs_in_checkpoints(program, {"a"}), 2);
  EXPECT_EQ(outputs_in_checkpoints(program, {"a", "b", "begin"}), 4);
}

TEST(Bounds, WhatARecomputeTakesIsAtHandInTheStreamsOwnPool) {
  CoreOptions options;
  options.reload_pool = ReloadPool::kCopyStream;
  options.hold_bytes = options.prefetch_bytes = 0;
  OffloadStatistics counts;
  counts.backward_stash_peak_bytes = 13;
  EXPECT_TRUE(judge_bounds(options, counts, {.largest = 1}));
  EXPECT_FALSE(judge_bounds(options, counts, {.largest = 1, .kept = 1}));
}

}  // namespace
}  // namespace ferry::verify
