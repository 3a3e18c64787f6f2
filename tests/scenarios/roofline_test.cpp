#include "scenarios/roofline.h"

#include <gtest/gtest.h>

#include <limits>

#include "formats/limits.h"

namespace ferry {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// 1 PFLOP/s in bf16 and 100 TFLOP/s in fp32 at half of the peak, 1 TB/s at half of it.
Hardware hardware() {
  return {.name = "test",
          .description = "",
          .memory_bytes = 1,
          .host_memory_bytes = 1,
          .flops_per_us = {1'000'000'000, 1'000'000'000, 100'000'000, 1'000'000},
          .memory_bytes_per_us = 1'000'000,
          .matmul_percent = 50,
          .memory_percent = 50,
          .kernel_min_ns = 2'000,
          .launch_ns = 0,
          .link = {}};
}

Op op(std::int64_t flops, std::int64_t bytes_read, std::int64_t bytes_written) {
  Op op;
  op.flops = flops;
  op.read_bytes = bytes_read;
  op.written_bytes = bytes_written;
  return op;
}

TEST(RooflineTest, TheLongestOfThreeDecides) {
  EXPECT_EQ(kernel_ns(op(10'000'000'000, 0, 0), DType::kBF16, hardware()), 20'000);
  EXPECT_EQ(kernel_ns(op(10'000'000'000, 0, 0), DType::kF32, hardware()), 200'000);
  EXPECT_EQ(kernel_ns(op(10'000'000'000, 8'000'000, 7'000'000), DType::kBF16, hardware()), 30'000);
  EXPECT_EQ(kernel_ns(op(1, 1, 1), DType::kBF16, hardware()), 2'000);
}

TEST(RooflineTest, WhatBytesTakeIsToldApart) {
  EXPECT_EQ(moving_ns(op(10'000'000'000, 4'000'000, 1'000'000), hardware()), 10'000);
  Op measured = op(0, 10'000'000, 0);
  measured.measured_ns = 7;
  EXPECT_EQ(moving_ns(measured, hardware()), 20'000);
}

TEST(RooflineTest, WhatTheL2HasIsReadAtItsRate) {
  Hardware card = hardware();  // 500 bytes a ns
  card.l2_bytes_per_us = 4'000'000;
  Op found = op(0, 8'000'000, 2'000'000);
  found.cached_bytes = 6'000'000;
  EXPECT_EQ(kernel_ns(found, DType::kBF16, card), 8'000 + 1'500);
  EXPECT_EQ(moving_ns(found, card), 8'000);
}

TEST(RooflineTest, AFractionOfANanosecondIsRoundedUp) {
  EXPECT_EQ(kernel_ns(op(0, 10'000'000, 1), DType::kBF16, hardware()), 20'001);
}

TEST(RooflineTest, EachOfSeveralKernelsIsAtLeastTheShortest) {
  Op several = op(1, 1, 1);
  several.kernels = 3;
  EXPECT_EQ(kernel_ns(several, DType::kBF16, hardware()), 6'000);
}

TEST(RooflineTest, AttentionHasAShareOfItsOwn) {
  Hardware card = hardware();
  card.attention_percent = 25;
  Op attention = op(10'000'000'000, 0, 0);
  attention.name = "aten._scaled_dot_product_flash_attention";
  EXPECT_EQ(kernel_ns(attention, DType::kBF16, card), 40'000);
  EXPECT_EQ(kernel_ns(op(10'000'000'000, 0, 0), DType::kBF16, card), 20'000);
}

TEST(RooflineTest, AProductTakesWholeTilesWhereMultiprocessorsAreKnown) {
  Hardware card = hardware();
  Op product = op(2 * 257 * 128 * 128, 0, 0);
  product.products = {{1, 257, 128, 128, 16}};
  card.kernel_min_ns = 0;
  EXPECT_EQ(kernel_ns(product, DType::kBF16, card), 17) << "by FLOPs alone";
  card.multiprocessors = 1;
  EXPECT_GT(kernel_ns(product, DType::kBF16, card), 20) << "three rows of tiles for two and a row";
}

TEST(RooflineTest, ProductsAreComputedOneAfterTheOther) {
  Hardware card = hardware();
  card.kernel_min_ns = 0;
  card.multiprocessors = 4;
  const auto ns = [&](const std::vector<MatrixProduct>& products) {
    Op op;
    op.products = products;
    return kernel_ns(op, DType::kBF16, card);
  };
  const MatrixProduct one{1, 512, 512, 4096, 16}, other{1, 64, 64, 100'000, 16};
  EXPECT_EQ(ns({one, other}), ns({one}) + ns({other}));
}

TEST(RooflineTest, AMeasuredTimeWins) {
  Op measured = op(10'000'000'000, 0, 0);
  measured.measured_ns = 7;
  EXPECT_EQ(kernel_ns(measured, DType::kBF16, hardware()), 7);
}

TEST(RooflineTest, NothingOverflows) {
  Hardware slow = hardware();
  slow.memory_bytes_per_us = 1;
  EXPECT_EQ(kernel_ns(op(kMost, kMost, kMost), DType::kF64, slow),
            limits::kTimeNs + 1);  // which no step has room for
  Hardware instant = hardware();
  instant.kernel_min_ns = 0;
  EXPECT_EQ(kernel_ns(op(0, 0, 0), DType::kBF16, instant), 1);
}

}  // namespace
}  // namespace ferry
