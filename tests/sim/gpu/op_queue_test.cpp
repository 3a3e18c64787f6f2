#include "sim/gpu/op_queue.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ferry::sim {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

QueuedOp op(std::uint64_t index, std::int64_t not_before, std::int64_t value) {
  return {index << QueuedOp::kKindBits | index % 6, not_before, value};
}

struct OpQueueTest : ::testing::Test {
  // Pushes all, and pops all.
  void expect_kept(const std::vector<QueuedOp>& ops) {
    for (const QueuedOp& each : ops) queue.push(store, each);
    for (const QueuedOp& each : ops) {
      ASSERT_FALSE(queue.empty());
      EXPECT_EQ(queue.front().tag, each.tag);
      EXPECT_EQ(queue.front().not_before, each.not_before);
      EXPECT_EQ(queue.front().value, each.value);
      queue.pop(store);
    }
    EXPECT_TRUE(queue.empty());
  }

  ChunkStore store;
  OpQueue queue;
};

TEST_F(OpQueueTest, AnyNumberOfSubmissionsMayLieBetween) {
  for (const std::uint64_t gap : {1u, 4'094u, 4'095u, 4'096u, 4'097u, 1u << 31}) {
    expect_kept({op(7, 0, 1), op(7 + gap, 0, 2), op(8 + gap, 0, 3)});
  }
  expect_kept({op(0, 0, 1), op(std::uint64_t{1} << 56, 0, 1)});
}

TEST_F(OpQueueTest, AnyTimeMayLieBetween) {
  for (const std::int64_t gap : {0, 65'535, 65'536, 65'537, 1 << 30}) {
    expect_kept({op(0, 5, 1), op(1, 5 + gap, 1), op(2, 6 + gap, 1)});
    expect_kept({op(0, 5 + gap, 1), op(1, 5, 1), op(2, 6, 1)});  // back in time
  }
  expect_kept({op(0, 0, 1), op(1, kMost, 1), op(2, 0, 1), op(3, 1, 1)});
}

TEST_F(OpQueueTest, AnyValueIsKept) {
  const std::int64_t whole = std::int64_t{1} << 33;
  expect_kept({op(0, 0, 0), op(1, 0, whole - 1), op(2, 0, whole), op(3, 0, whole + 1),
               op(4, 0, kMost), op(5, 0, 0)});
}

TEST_F(OpQueueTest, AnOperationInThreeWordsFitsAnywhereInAChunk) {
  for (std::uint64_t before = 0; before < 2 * OpChunk::kWords; ++before) {
    std::vector<QueuedOp> ops;
    for (std::uint64_t i = 0; i < before; ++i) ops.push_back(op(i, 0, 1));
    ops.push_back(op(before, kMost, kMost));
    for (std::uint64_t i = 1; i < 4; ++i) ops.push_back(op(before + i, kMost, 1));
    expect_kept(ops);
  }
}

TEST_F(OpQueueTest, AlikeOnesTakeEightBytesAndOthersTwentyFour) {
  for (std::uint64_t i = 0; i < 100'000; ++i) queue.push(store, op(i * 5, 0, 500'000));
  EXPECT_LT(store.held_bytes(), 830'000u);
  OpQueue other;
  ChunkStore its;
  for (std::uint64_t i = 0; i < 100'000; ++i) other.push(its, op(i, 0, kMost));
  EXPECT_LT(its.held_bytes(), 2'500'000u);
}

TEST_F(OpQueueTest, WhatIsOverLeavesItsChunkToOthers) {
  OpQueue other;
  std::size_t held = 0;
  for (int round = 0; round < 100; ++round) {
    for (OpQueue* each : {&queue, &other}) {
      for (std::uint64_t i = 0; i < 1'000; ++i) each->push(store, op(i, 0, 1));
      for (std::uint64_t i = 0; i < 1'000; ++i) each->pop(store);
    }
    if (round == 0) held = store.held_bytes();
  }
  EXPECT_EQ(store.held_bytes(), held);
}

}  // namespace
}  // namespace ferry::sim
