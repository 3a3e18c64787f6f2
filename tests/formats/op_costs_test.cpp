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

TEST(OpCosts, CausalAttentionCountsThePairsThatItsMaskLeaves) {
  const Layout q = tensor({2, 4, 8, 16}), longer = tensor({2, 4, 32, 16});
  const auto flops = [](const Layout& query, const Layout& key, bool backward) {
    const std::string_view name = backward ? "aten._scaled_dot_product_efficient_attention_backward"
                                           : "aten._scaled_dot_product_efficient_attention";
    OpCall call{.name = name, .in = {}, .out = {&query}, .writes = {}};
    call.flags.is_causal = true;
    if (backward) call.in.push_back(&query);
    call.in.insert(call.in.end(), {&query, &key, &key});
    return op_costs(call).flops;
  };
  const std::int64_t pair = 2 * (2 * 4) * (16 + 16);
  EXPECT_EQ(flops(q, q, false), pair * (8 * 9 / 2));
  EXPECT_EQ(flops(q, q, true), pair * (8 * 9 / 2) * 5 / 2);
  EXPECT_EQ(flops(q, longer, false), pair * (8 * 9 / 2)) << "no query reaches the last keys";
  EXPECT_EQ(flops(longer, q, false), pair * (8 * 9 / 2 + 24 * 8)) << "the last see all keys";
}

TEST(OpCosts, AProductSaysItsShapeAndHowItsRowsLie) {
  const auto product = [](const Layout& a, const Layout& b, const Layout& to) {
    return costs("aten.mm", {a, b}, {to}).products.at(0);
  };
  const auto half = [](std::vector<std::int64_t> shape) {
    return contiguous_layout(DType::kBF16, std::move(shape));
  };
  Layout turned = half({8, 50257});  // of a weight with rows of 8
  turned.strides = {1, 8};
  EXPECT_EQ(product(half({64, 8}), turned, half({64, 50257})), (MatrixProduct{1, 64, 50257, 8, 2}))
      << "the result's rows are of 100,514 bytes";
  EXPECT_EQ(product(half({64, 8}), turned, half({64, 50256})).aligned_bytes, 16);
  EXPECT_EQ(product(half({64, 12}), half({12, 8}), half({64, 8})).aligned_bytes, 8);
  Layout shifted = half({64, 8});
  shifted.offset = 2;
  EXPECT_EQ(product(shifted, half({8, 8}), half({64, 8})).aligned_bytes, 4);
  EXPECT_EQ(product(tensor({64, 5}), tensor({5, 4}), tensor({64, 4})).aligned_bytes, 4);
  EXPECT_EQ(product(half({1, 5}), turned, half({1, 50257})).aligned_bytes, 16)
      << "one row begins at its storage's start";
  EXPECT_EQ(
      costs("aten.bmm", {half({6, 64, 8}), half({6, 8, 32})}, {half({6, 64, 32})}).products.at(0),
      (MatrixProduct{6, 64, 32, 8, 16}));
  EXPECT_TRUE(costs("aten.relu", {half({64, 8})}, {half({64, 8})}).products.empty());
}

TEST(OpCosts, SeveralKernelsHandBytesToEachOther) {
  const Layout x = tensor({8, 16});
  const OpCosts fill =
      costs("aten.masked_fill", {x, contiguous_layout(DType::kBool, {8, 16})}, {x});
  EXPECT_EQ(fill.kernels, 2);
  EXPECT_EQ(fill.read_bytes, 2 * 512 + 128) << "the copy reads x, filling reads the copy";
  EXPECT_EQ(fill.written_bytes, 2 * 512);
  const OpCosts softmax = costs("aten._softmax_backward_data", {x, x}, {x});
  EXPECT_EQ(softmax.kernels, 2);
  EXPECT_EQ(softmax.read_bytes, 4 * 512);
  EXPECT_EQ(softmax.written_bytes, 2 * 512);
  const Layout w = tensor({16});
  EXPECT_EQ(costs("aten.native_layer_norm_backward", {x, x, w, w, w}, {x, w, w}).kernels, 2);
  EXPECT_EQ(costs("aten.native_layer_norm_backward", {x, x, w, w, w}, {x}).kernels, 1);
  EXPECT_EQ(costs("aten.relu", {x}, {x}).kernels, 1);
}

TEST(OpCosts, AnEmbeddingsGradientIsSortedWhereItHasManyRows) {
  const auto backward = [](std::int64_t count, std::int64_t rows) {
    return costs("aten.embedding_dense_backward",
                 {tensor({count, 64}), contiguous_layout(DType::kI64, {count})},
                 {tensor({rows, 64})});
  };
  const std::int64_t row = 64 * 4;
  const OpCosts few = backward(3072, 50000);
  EXPECT_EQ(few.kernels, 2);
  EXPECT_EQ(few.read_bytes, 3072 * (row + 8 + row)) << "what is added to, as well";
  EXPECT_EQ(few.written_bytes, (50000 + 3072) * row);
  const OpCosts many = backward(3073, 50000);
  EXPECT_EQ(many.kernels, 21);
  EXPECT_EQ(many.read_bytes, 3073 * (row + 8 + 8 * 16 + row)) << "the parts are rows";
  EXPECT_EQ(many.written_bytes, 50000 * row + 3073 * (8 * 16 + row + row));
  const OpCosts often = backward(10000, 100);
  EXPECT_EQ(often.read_bytes, 10000 * (row + 8 + 8 * 16) + (1000 + 100) * row);
  EXPECT_EQ(often.written_bytes, 100 * row + 10000 * 8 * 16 + (1000 + 100 + 100) * row);
}

TEST(OpCosts, AttentionInBackwardSumsWhatItsKernelDoesNot) {
  const auto half = [](std::vector<std::int64_t> shape) {
    return contiguous_layout(DType::kBF16, std::move(shape));
  };
  const std::string_view flash = "aten._scaled_dot_product_flash_attention_backward";
  const Layout q = half({1, 8, 16, 64}), k = half({1, 2, 16, 64});
  const std::int64_t head = 16 * 64 * 2;
  const OpCosts whole = costs(flash, {q, q, q, q}, {q, q, q});
  EXPECT_EQ(whole.kernels, 3);
  EXPECT_EQ(whole.read_bytes, (4 + 3) * 8 * head);
  EXPECT_EQ(whole.written_bytes, (3 + 2) * 8 * head);
  const OpCosts grouped = costs(flash, {q, q, k, k}, {q, k, k});
  EXPECT_EQ(grouped.kernels, 5);
  EXPECT_EQ(grouped.read_bytes, (2 * 8 + 2 * 2 + 3 * 8 + 2 * 8) * head);
  EXPECT_EQ(grouped.written_bytes, (8 + 2 * 2 + 2 * 8 + 2 * 8) * head);

  const std::string_view efficient = "aten._scaled_dot_product_efficient_attention_backward";
  const OpCosts in_half = costs(efficient, {q, q, q, q}, {q, q, q});
  EXPECT_EQ(in_half.kernels, 2);
  EXPECT_EQ(in_half.written_bytes, (3 + 2) * 8 * head);
  const Layout full = tensor({1, 8, 16, 64});
  const OpCosts in_full = costs(efficient, {full, full, full, full}, {full, full, full});
  EXPECT_EQ(in_full.kernels, 5);
  EXPECT_EQ(in_full.read_bytes, (4 + 3) * 16 * head);
  EXPECT_EQ(in_full.written_bytes, (3 + 2) * 16 * head);
}

TEST(OpCosts, AMatrixThatIsAddedToAProductIsCopiedFirstAndAVectorIsNot) {
  const Layout a = tensor({4, 8}), b = tensor({8, 16}), made = tensor({4, 16});
  const OpCosts vector = costs("aten.addmm", {tensor({16}), a, b}, {made});
  EXPECT_EQ(vector.kernels, 1);
  EXPECT_EQ(vector.written_bytes, 4 * 4 * 16);
  const OpCosts matrix = costs("aten.addmm", {made, a, b}, {made});
  EXPECT_EQ(matrix.kernels, 2);
  EXPECT_EQ(matrix.read_bytes, 4 * (4 * 16 + 4 * 8 + 8 * 16 + 4 * 16));
  EXPECT_EQ(matrix.written_bytes, 2 * 4 * 4 * 16);
}

TEST(OpCosts, AGroupNormsWeightHasAKernelOfItsOwnInBackward) {
  const Layout x = tensor({2, 8, 4}), w = tensor({8}), of_groups = tensor({2, 4});
  const auto backward = [&](const std::vector<Layout>& out) {
    return costs("aten.native_group_norm_backward", {x, x, of_groups, of_groups, w}, out).kernels;
  };
  EXPECT_EQ(backward({x, w, w}), 5);
  EXPECT_EQ(backward({x}), 4);
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
