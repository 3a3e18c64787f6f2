#include "formats/op_costs.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "formats/layout.h"

namespace ferry {
namespace {

Layout tensor(std::vector<std::int64_t> shape) {
  return contiguous_layout(DType::kF32, std::move(shape));
}

OpCosts costs(std::string_view name, const std::vector<Layout>& in, const std::vector<Layout>& out,
              std::vector<std::uint32_t> writes = {}) {
  OpCall call{.name = name, .in = {}, .out = {}, .writes = std::move(writes)};
  for (const Layout& layout : in) call.in.push_back(&layout);
  for (const Layout& layout : out) call.out.push_back(&layout);
  return op_costs(call);
}

TEST(OpCosts, AMatmulTakesAMultiplyAndAnAddForEachTerm) {
  const OpCosts mm = costs("aten.mm", {tensor({3, 5}), tensor({5, 7})}, {tensor({3, 7})});
  EXPECT_EQ(mm.flops, 2 * 3 * 5 * 7);
  EXPECT_EQ(mm.read_bytes, 4 * (15 + 35));
  EXPECT_EQ(mm.written_bytes, 4 * 21);
  const OpCosts addmm =
      costs("aten.addmm", {tensor({7}), tensor({3, 5}), tensor({5, 7})}, {tensor({3, 7})});
  EXPECT_EQ(addmm.flops, 2 * 3 * 5 * 7);
}

TEST(OpCosts, AttentionInBackwardTakesFiveMatmulsForTwo) {
  const Layout q = tensor({2, 4, 8, 16}), k = tensor({2, 4, 32, 16});
  const std::int64_t forward =
      costs("aten._scaled_dot_product_efficient_attention", {q, k, k}, {q}).flops;
  EXPECT_EQ(forward, 2 * (2 * 4 * 8) * 32 * (16 + 16));
  EXPECT_EQ(
      costs("aten._scaled_dot_product_efficient_attention_backward", {q, q, k, k}, {q, k, k}).flops,
      forward * 5 / 2);
}

TEST(OpCosts, AConvolutionInBackwardTakesAPassForEachGradientOfItsShape) {
  const Layout x = tensor({2, 3, 8, 8}), w = tensor({5, 3, 3, 3}), y = tensor({2, 5, 8, 8});
  const std::int64_t forward = costs("aten.convolution", {x, w}, {y}).flops;
  EXPECT_EQ(forward, 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3));
  EXPECT_EQ(costs("aten.convolution_backward", {y, x, w}, {x, w, tensor({5})}).flops, 2 * forward);
}

TEST(OpCosts, AGatherReadsWhatItReturnsAndAnOverwriteWhatItIsGiven) {
  const OpCosts embedding =
      costs("aten.embedding", {tensor({1000, 4}), tensor({3})}, {tensor({3, 4})});
  EXPECT_EQ(embedding.read_bytes, 4 * (3 * 4 + 3));
  const OpCosts copy = costs("aten.copy_", {tensor({6}), tensor({6})}, {}, {0});
  EXPECT_EQ(copy.read_bytes, 4 * 6);
  EXPECT_EQ(copy.written_bytes, 4 * 6);
  EXPECT_EQ(costs("aten.empty_like", {tensor({6})}, {tensor({6})}), OpCosts());
}

TEST(OpCosts, AnExpandedTensorHasItsDistinctElementsRead) {
  Layout expanded = tensor({1, 6});
  expanded.shape = {100, 6};
  expanded.strides = {0, 1};
  EXPECT_EQ(costs("aten.relu", {expanded}, {tensor({100, 6})}).read_bytes, 4 * 6);
}

}  // namespace
}  // namespace ferry
