#include "formats/op_products.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "formats/layout.h"

namespace ferry {
namespace {

Layout tensor(std::vector<std::int64_t> shape) {
  return contiguous_layout(DType::kF32, std::move(shape));
}

struct Said {
  std::int64_t flops = 0;
  std::vector<MatrixProduct> products;
};

Said said(std::string_view name, const std::vector<Layout>& in, const std::vector<Layout>& out,
          bool transposed = false) {
  OpCall call{.name = name, .in = {}, .out = {}, .writes = {}};
  for (const Layout& layout : in) call.in.push_back(&layout);
  for (const Layout& layout : out) call.out.push_back(&layout);
  call.flags.transposed = transposed;
  return {op_flops(call), op_products(call)};
}

std::int64_t flops_of(const std::vector<MatrixProduct>& products) {
  std::int64_t flops = 0;
  for (const MatrixProduct& each : products) flops += 2 * each.batch * each.m * each.n * each.k;
  return flops;
}

// Two images, from 16 channels to 32, a filter of 3 by 5, every second place of 20 by 30.
const Layout kImage = tensor({2, 16, 20, 30}), kFilter = tensor({32, 16, 3, 5});
const Layout kMade = tensor({2, 32, 10, 15});
constexpr std::int64_t kPlaces = 2 * 10 * 15, kTaps = 3 * 5;

TEST(OpProducts, AConvolutionMultipliesPlacesOfTheOutputByTheFilter) {
  const Said forward = said("aten.convolution", {kImage, kFilter, tensor({32})}, {kMade});
  EXPECT_EQ(forward.products, (std::vector<MatrixProduct>{{1, kPlaces, 32, 16 * kTaps}}));
  EXPECT_EQ(forward.flops, flops_of(forward.products));
}

TEST(OpProducts, ItsGradientsAreProductsOfTheirOwn) {
  const MatrixProduct of_image{1, kPlaces, 16, 32 * kTaps};
  const MatrixProduct of_filter{1, 32, 16 * kTaps, kPlaces};
  const std::vector<Layout> in = {kMade, kImage, kFilter};
  const Said both = said("aten.convolution_backward", in, {kImage, kFilter, tensor({32})});
  EXPECT_EQ(both.products, (std::vector<MatrixProduct>{of_image, of_filter}));
  EXPECT_EQ(both.flops, flops_of(both.products));
  EXPECT_EQ(said("aten.convolution_backward", in, {kFilter}).products,
            std::vector<MatrixProduct>{of_filter})
      << "of the step's first one";
  EXPECT_EQ(said("aten.convolution_backward", in, {kImage}).products,
            std::vector<MatrixProduct>{of_image})
      << "of a frozen one";
}

TEST(OpProducts, ATransposedOneIsTheOtherWayRound) {
  const Said forward = said("aten.convolution", {kMade, kFilter}, {kImage}, true);
  EXPECT_EQ(forward.products, (std::vector<MatrixProduct>{{1, kPlaces, 16, 32 * kTaps}}));
  EXPECT_EQ(forward.flops, flops_of(forward.products));
  const Said back =
      said("aten.convolution_backward", {kImage, kMade, kFilter}, {kMade, kFilter}, true);
  EXPECT_EQ(back.products, (std::vector<MatrixProduct>{{1, kPlaces, 32, 16 * kTaps},
                                                       {1, 32, 16 * kTaps, kPlaces}}));
}

TEST(OpProducts, AGroupedOneHasFlopsAlone) {
  const Layout filter = tensor({32, 4, 3, 5});
  const Said grouped = said("aten.convolution", {kImage, filter}, {kMade});
  EXPECT_EQ(grouped.flops, 2 * kPlaces * 32 * 4 * kTaps);
  EXPECT_TRUE(grouped.products.empty());
  EXPECT_EQ(said("aten.convolution_backward", {kMade, kImage, filter}, {kImage, filter}).flops,
            2 * grouped.flops);
}

TEST(OpProducts, AttentionsGradientHasThreeProductsOfTheKeysWidthAndTwoOfTheValues) {
  const Layout q = tensor({2, 4, 8, 16}), v = tensor({2, 4, 8, 24});
  EXPECT_EQ(
      said("aten._scaled_dot_product_efficient_attention_backward", {v, q, q, v}, {q, q, v}).flops,
      2 * (2 * 4) * (8 * 8) * (3 * 16 + 2 * 24));
}

TEST(OpProducts, PackedWeightsCountByWhatTheyMake) {
  const Layout rows = tensor({2, 8, 64}), packed = tensor({32 * 64 / 2, 1});
  EXPECT_EQ(said("bitsandbytes.gemm_4bit", {rows, packed}, {tensor({2, 8, 32})}).flops,
            2 * (2 * 8) * 64 * 32);
  EXPECT_EQ(said("bitsandbytes.dequantize_4bit", {packed}, {tensor({32, 64})}).flops, 0);
}

TEST(OpProducts, FlashAttnsFunctionsHaveTheHeadsBehindThePositions) {
  const Layout q = tensor({2, 8, 4, 16}), k = tensor({2, 10, 2, 16}), lse = tensor({2, 4, 8});
  const std::int64_t forward = 2 * (2 * 4) * (8 * 10) * (16 + 16);
  EXPECT_EQ(said("flash_attn_2_cuda.fwd", {q, k, k, q, lse}, {}).flops, forward);
  EXPECT_EQ(said("flash_attn_2_cuda.bwd", {q, q, k, k, q, lse}, {}).flops, forward / 2 * 5);
  // Two sequences of eight queries and ten keys.
  const Layout queries = tensor({16, 4, 16}), keys = tensor({20, 2, 16}), starts = tensor({3});
  EXPECT_EQ(said("flash_attn_2_cuda.varlen_fwd", {queries, keys, keys, starts, starts}, {}).flops,
            forward);
  EXPECT_EQ(said("flash_attn_2_cuda.varlen_bwd", {queries, queries, keys, keys, starts}, {}).flops,
            forward / 2 * 5);
}

TEST(OpProducts, TheLastQueryOfFlashAttnSeesTheLastKey) {
  const Layout q = tensor({1, 2, 1, 8}), k = tensor({1, 5, 1, 8});
  OpCall call{.name = "flash_attn_2_cuda.fwd", .in = {&q, &k, &k, &q}, .out = {}, .writes = {}};
  call.flags.is_causal = true;
  EXPECT_EQ(op_flops(call), 2 * (4 + 5) * (8 + 8));
}

TEST(OpProducts, RowsOfExpertsAreMultipliedOnce) {
  EXPECT_EQ(
      said("aten._grouped_mm", {tensor({64, 8}), tensor({4, 8, 32})}, {tensor({64, 32})}).flops,
      2 * 64 * 8 * 32);
}

}  // namespace
}  // namespace ferry
