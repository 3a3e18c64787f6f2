#include "formats/layout.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

using Sizes = std::vector<std::int64_t>;
constexpr std::int64_t kHuge = std::int64_t{1} << 40;

TEST(LayoutTest, EveryDTypeReadsItsOwnName) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    EXPECT_GE(itemsize(dtype), 1);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(itemsize(DType::kBF16), 2);
}

TEST(LayoutTest, StridesAreRowMajor) {
  EXPECT_EQ(contiguous_strides(Sizes{2, 3, 4}), (Sizes{12, 4, 1}));
  EXPECT_EQ(contiguous_strides(Sizes{}), Sizes{});
  EXPECT_EQ(contiguous_strides(Sizes{2, 0, 4}), (Sizes{4, 4, 1}));  // as PyTorch does
}

TEST(LayoutTest, ContiguousMeansRowMajorFromTheStart) {
  Layout layout = contiguous_layout(DType::kF32, {2, 3});
  EXPECT_TRUE(is_contiguous(layout));
  layout.offset = 1;
  EXPECT_FALSE(is_contiguous(layout));
}

TEST(LayoutTest, DenseMeansThatTheElementsFillTheirHull) {
  EXPECT_TRUE(is_dense(contiguous_layout(DType::kF32, {2, 3})));
  EXPECT_TRUE(is_dense({DType::kF32, {2, 3}, {1, 2}, 7})) << "transposed, wherever it begins";
  EXPECT_TRUE(is_dense({DType::kF32, {1, 3}, {5, 1}, 0})) << "one element has no step";
  EXPECT_TRUE(is_dense({DType::kF32, {2, 0}, {9, 9}, 0}));
  EXPECT_TRUE(is_dense({DType::kF32, {}, {}, 0}));
  EXPECT_FALSE(is_dense({DType::kF32, {3}, {2}, 0})) << "holes";
  EXPECT_FALSE(is_dense({DType::kF32, {2, 3}, {4, 1}, 0})) << "a hole between rows";
  EXPECT_FALSE(is_dense({DType::kF32, {2, 3}, {0, 1}, 0})) << "each place twice";
}

TEST(LayoutTest, AStorageHasRoomOnASimulatedDevice) {
  EXPECT_NO_THROW(check_storage(contiguous_layout(DType::kU8, {8, kHuge})));
  EXPECT_THROW(check_storage(contiguous_layout(DType::kU8, {8, kHuge + 1})), LayoutError);
  EXPECT_THROW(check_storage({DType::kU8, {1}, {1}, 8 * kHuge}), LayoutError);  // the offset's
  EXPECT_NO_THROW(check_storage(contiguous_layout(DType::kU8, Sizes(64, 1))));
  EXPECT_THROW(check_storage(contiguous_layout(DType::kU8, Sizes(65, 1))), LayoutError);
}

TEST(LayoutTest, HullCoversFirstToLastElement) {
  EXPECT_EQ(hull(contiguous_layout(DType::kF32, {2, 3})), (Hull{0, 24}));
  EXPECT_EQ(hull({DType::kBF16, {64, 8}, {64, 1}, 8}), (Hull{16, 2 * (8 + 63 * 64 + 8)}));
  EXPECT_EQ(hull({DType::kF32, {1000, 4}, {0, 1}, 0}), (Hull{0, 16}));  // broadcast
  EXPECT_EQ(hull({DType::kF64, {}, {}, 3}), (Hull{24, 32}));            // a scalar
}

TEST(LayoutTest, AnEmptyTensorCoversNothing) {
  EXPECT_EQ(hull({DType::kF32, {3, 0}, {1, 1}, 1000}), (Hull{0, 0}));
  EXPECT_EQ(numel(Sizes{kHuge, kHuge, 0}), 0);
}

TEST(LayoutTest, BytesOfTensorAndStorageDiffer) {
  const Layout window{DType::kF32, {2, 2}, {10, 1}, 5};
  EXPECT_EQ(tensor_bytes(window), 16);
  EXPECT_EQ(storage_bytes(window), 4 * (5 + 10 + 1 + 1));
}

TEST(LayoutTest, WhatIsNoLayoutIsRefused) {
  EXPECT_THROW(numel(Sizes{-1}), LayoutError);
  EXPECT_THROW(numel(Sizes{0, -1}), LayoutError);
  EXPECT_THROW(numel(Sizes{kHuge, kHuge}), LayoutError);
  EXPECT_THROW(contiguous_strides(Sizes{1, kHuge, kHuge}), LayoutError);
  EXPECT_THROW(hull({DType::kF32, {2}, {}, 0}), LayoutError);
  EXPECT_THROW(hull({DType::kF32, {2}, {-1}, 0}), LayoutError);
  EXPECT_THROW(hull({DType::kF32, {2}, {1}, -1}), LayoutError);
  EXPECT_THROW(hull({DType::kF32, {kHuge}, {kHuge}, 0}), LayoutError);
  EXPECT_THROW(hull({DType::kF64, {1}, {1}, std::int64_t{1} << 61}), LayoutError);
}

}  // namespace
}  // namespace ferry
