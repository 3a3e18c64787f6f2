#include "scenarios/matrix_time.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

// 100 multiprocessors of 1 TFLOP/s each in bf16, and 1 TB/s.
Hardware hardware() {
  Hardware card;
  card.multiprocessors = 100;
  card.flops_per_us = {100'000'000, 100'000'000, 100'000'000, 100'000'000};
  card.memory_bytes_per_us = 1'000'000;
  return card;
}

std::int64_t ns(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1,
                std::int64_t aligned = 16) {
  return static_cast<std::int64_t>(product_ns({batch, m, n, k, aligned}, DType::kBF16, hardware()));
}

// Of the largest tiles, with k terms, on one multiprocessor.
std::int64_t wave_ns(std::int64_t k) { return 2 * 256 * 128 * k / 1000; }

TEST(MatrixTime, AWaveOfLargeTilesGoesAtTheStatedRate) {
  EXPECT_EQ(ns(2560, 1280, 1000), wave_ns(1000)) << "10 by 10 tiles";
  EXPECT_EQ(ns(1280, 2560, 1000), wave_ns(1000)) << "the other way round";
  EXPECT_EQ(ns(256, 128, 1000, 100), wave_ns(1000)) << "one of each in a batch";
  EXPECT_EQ(ns(5120, 2560, 1000), 4 * wave_ns(1000));
}

TEST(MatrixTime, TheTailOfAWaveCostsUpToAWave) {
  const std::int64_t whole = ns(2560, 1280, 1000), more = ns(2560 + 256, 1280, 1000);
  EXPECT_GT(more * 100, whole * 110) << "10 tiles more take more than their share";
  EXPECT_LE(more, 2 * whole);
}

TEST(MatrixTime, ATileAtTheEdgeCostsAWholeOne) {
  EXPECT_EQ(ns(2560 - 7, 1280 - 3, 1000), ns(2560, 1280, 1000));
  EXPECT_GT(ns(2560 + 1, 1280, 1000), ns(2560, 1280, 1000));
}

TEST(MatrixTime, FewTilesAreSplitOverTheTermsOfTheirSums) {
  // One large tile would leave 99 multiprocessors without work.
  EXPECT_LT(ns(256, 128, 8192) * 8, wave_ns(8192));
  // With few terms there is nothing to split, and what there is takes small tiles.
  EXPECT_EQ(ns(64, 64, 256), 2 * 64 * 64 * 256 / 1000 * 100 / 75 + 1);
}

TEST(MatrixTime, SumsThatGoThroughMemoryArePaidFor) {
  Hardware slow = hardware();
  slow.memory_bytes_per_us = 1;
  EXPECT_LT(ns(256, 128, 8192), 20'000);
  EXPECT_EQ(product_ns({1, 256, 128, 8192, 16}, DType::kBF16, slow), 89'479)
      << "eight tiles of 64 by 64, whole";
}

TEST(MatrixTime, RowsThatBeginAnywhereTakeTwiceAsLong) {
  EXPECT_EQ(ns(2560, 1280, 1000, 1, 8), 2 * wave_ns(1000));
  EXPECT_EQ(ns(2560, 1280, 1000, 1, 2), 2 * wave_ns(1000));
  EXPECT_EQ(product_ns({1, 2560, 1280, 1000, 8}, DType::kF64, hardware()), wave_ns(1000))
      << "two elements of fp64 are 16 bytes";
}

TEST(MatrixTime, AHopperTakesLongestForRowsThatBeginAnywhere) {
  Hardware hopper = hardware();
  hopper.compute_capability = 90;
  const auto times = [&](std::int64_t aligned) {
    return product_ns({1, 2560, 1280, 1000, aligned}, DType::kBF16, hopper) * 10 / wave_ns(1000);
  };
  EXPECT_EQ(times(16), 10);
  EXPECT_EQ(times(8), 35);
  EXPECT_EQ(times(2), 50);
}

TEST(MatrixTime, WhatIsNotKnownHasNone) {
  Hardware unknown = hardware();
  unknown.multiprocessors = 0;
  EXPECT_EQ(product_ns({1, 256, 128, 1000, 16}, DType::kBF16, unknown), 0);
  EXPECT_EQ(product_ns({}, DType::kBF16, hardware()), 0);
}

TEST(MatrixTime, TheLargestProductsDoNotOverflow) {
  const std::int64_t most = std::int64_t{1} << 31;
  Hardware slow = hardware();
  slow.flops_per_us.fill(1);
  slow.multiprocessors = 1024;
  EXPECT_GT(product_ns({1, 1, 1, most, 2}, DType::kBF16, slow), 0);
  EXPECT_GT(product_ns({most, 1, 1, 100, 2}, DType::kBF16, slow), 0);
}

}  // namespace
}  // namespace ferry
