// Which call of a profile is an op's.
#include "scenarios/profiled_times.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "formats/layout.h"

namespace ferry {
namespace {

using Shape = std::vector<std::int64_t>;

ProfiledCall mm(Shape a, Shape b, std::int64_t ns, DType dtype = DType::kBF16) {
  return {"aten.mm", {{dtype, std::move(a)}, {dtype, std::move(b)}}, ns};
}

// Of bf16, as a program states it; none: a gradient.
OpSignature op_mm(std::optional<Shape> a, std::optional<Shape> b, std::int64_t read_bytes) {
  OpSignature op;
  op.name = "aten.mm";
  for (auto* shape : {&a, &b}) {
    op.in.emplace_back();
    if (*shape) op.in.back() = contiguous_layout(DType::kBF16, **shape);
  }
  op.read_bytes = read_bytes;
  return op;
}

TEST(ProfiledTimesTest, TheMedianOfEqualCalls) {
  ProfiledTimes times;
  times.add({mm(Shape{2, 3}, Shape{3, 4}, 30), mm(Shape{2, 3}, Shape{3, 4}, 10)});
  times.add({mm(Shape{2, 3}, Shape{3, 4}, 20), mm(Shape{2, 3}, Shape{3, 5}, 99),
             mm(Shape{2, 3}, Shape{3, 4}, 98, DType::kF32)});
  EXPECT_EQ(times.find(op_mm(Shape{2, 3}, Shape{3, 4}, 36)), 20);
  EXPECT_EQ(times.find(op_mm(Shape{2, 3}, Shape{3, 5}, 42)), 99);
  EXPECT_EQ(times.find(op_mm(Shape{2, 3}, Shape{3, 6}, 48)), std::nullopt);
}

TEST(ProfiledTimesTest, AGradientIsToldByTheBytesThatAreRead) {
  ProfiledTimes times;
  times.add({mm(Shape{2, 3}, Shape{3, 4}, 10), mm(Shape{7, 3}, Shape{3, 4}, 20)});
  EXPECT_EQ(times.find(op_mm(std::nullopt, Shape{3, 4}, (7 * 3 + 3 * 4) * 2)), 20);
  EXPECT_EQ(times.find(op_mm(std::nullopt, Shape{3, 4}, 1)), std::nullopt) << "either";
  EXPECT_EQ(times.find(op_mm(Shape{2, 3}, std::nullopt, 1)), 10) << "only one of them";
}

TEST(ProfiledTimesTest, AsManyTensors) {
  ProfiledTimes times;
  times.add({mm(Shape{2, 3}, Shape{3, 4}, 10)});
  OpSignature more = op_mm(Shape{2, 3}, Shape{3, 4}, 36);
  more.in.emplace_back();
  EXPECT_EQ(times.find(more), std::nullopt);
}

TEST(ProfiledTimesTest, AListsDtypeIsTheOpsOwn) {
  ProfiledTimes times;
  times.add({{"aten.mm", {{std::nullopt, {2, 3}}, {std::nullopt, {3, 4}}}, 10}});
  EXPECT_EQ(times.find(op_mm(Shape{2, 3}, Shape{3, 4}, 36)), 10);
}

TEST(ProfiledTimesTest, ANumberThatIsHandedAsATensorIsNone) {
  ProfiledTimes times;
  times.add({{"aten.div", {{DType::kBF16, {2, 3}}, {DType::kI64, {}}}, 10}});
  OpSignature op;
  op.name = "aten.div";
  op.in = {contiguous_layout(DType::kBF16, {2, 3})};
  EXPECT_EQ(times.find(op), 10);
  op.in.emplace_back(contiguous_layout(DType::kI64, {}));
  EXPECT_EQ(times.find(op), 10);
}

TEST(ProfiledTimesTest, CudnnsAttentionIsFlash) {
  const ProfiledInput heads{DType::kBF16, {2, 4, 64, 16}};
  const ProfiledInput seed{DType::kI64, {}};
  ProfiledTimes times;
  times.add({{"aten._scaled_dot_product_cudnn_attention", {heads, heads, heads}, 10},
             {"aten._scaled_dot_product_cudnn_attention_backward",
              {heads, heads, heads, heads, heads, {DType::kF32, {2, 4, 64}}, seed, seed},
              20}});
  OpSignature op;
  op.name = "aten._scaled_dot_product_flash_attention";
  op.in.assign(3, contiguous_layout(DType::kBF16, {2, 4, 64, 16}));
  EXPECT_EQ(times.find(op), 10);
  op.name += "_backward";
  op.in.assign(5, contiguous_layout(DType::kBF16, {2, 4, 64, 16}));
  op.in.emplace_back(contiguous_layout(DType::kF32, {2, 4, 64}));
  op.in.emplace_back(contiguous_layout(DType::kI64, {2}));
  op.in.emplace_back();
  EXPECT_EQ(times.find(op), 20);
  op.in[0] = contiguous_layout(DType::kBF16, {2, 4, 32, 16});
  EXPECT_EQ(times.find(op), std::nullopt);
}

}  // namespace
}  // namespace ferry
