#include "scenarios/cuda_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/error.h"
#include "formats/layout.h"

namespace ferry {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr Multiprocessors kH100{132, 2048};

Hardware card(std::int64_t compute_capability) {
  Hardware hardware;
  hardware.compute_capability = compute_capability;
  return hardware;
}

// Measured on PyTorch 2.11: 33,554,432 bytes where the major version is 9, and 8,519,680 elsewhere.
TEST(CudaMemoryTest, WorkspacesAreTheCards) {
  EXPECT_EQ(workspaces_of(card(90)), (WorkspaceBytes{32 * kMiB, kMiB}));
  for (const std::int64_t other : {75, 80, 89, 100, 120}) {
    EXPECT_EQ(workspaces_of(card(other)), (WorkspaceBytes{8'519'680, kMiB})) << other;
  }
  EXPECT_EQ(workspaces_of(card(0)), WorkspaceBytes{}) << "no GPU";
}

TEST(CudaMemoryTest, AConfigurationIsASumOfPairs) {
  EXPECT_EQ(parse_workspace_config(":4096:8", "option"), 32 * kMiB);
  EXPECT_EQ(parse_workspace_config(":4096:2:16:8", "option"), 8'519'680);
  EXPECT_EQ(parse_workspace_config(":0:0", "option"), 0);
  EXPECT_EQ(workspaces_of(card(90), parse_workspace_config(":16:8", "option")),
            (WorkspaceBytes{128 * kKiB, 128 * kKiB}));
}

TEST(CudaMemoryTest, AWrongConfigurationIsRefusedByName) {
  for (const char* wrong : {"", "4096:8", ":4096", ":4096:", ":4096:8x", ":-1:8", ":4096:8:",
                            ":99999999999999999999:1", ":1099511627776:1099511627776"}) {
    try {
      parse_workspace_config(wrong, "--option");
      ADD_FAILURE() << wrong;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("--option: expected pairs of KiB and a count", 0),
                0u)
          << wrong;
    }
  }
}

struct Call {
  std::string op;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;

  std::vector<std::int64_t> temporaries(const Multiprocessors& on) const {
    return temporaries_of(op, pointers(inputs), pointers(outputs), on);
  }
  std::array<bool, kWorkspaceLibraries> libraries() const {
    return libraries_of(op, pointers(inputs));
  }

 private:
  static std::vector<const Layout*> pointers(const std::vector<Layout>& layouts) {
    std::vector<const Layout*> all;
    for (const Layout& each : layouts) all.push_back(&each);
    return all;
  }
};

Layout tensor(std::vector<std::int64_t> shape, DType dtype = DType::kBF16) {
  return contiguous_layout(dtype, std::move(shape));
}

TEST(CudaMemoryTest, ABiasOfOneDimensionGoesToCublasLt) {
  const auto addmm = [](std::vector<std::int64_t> bias) {
    return Call{"aten.addmm", {tensor(std::move(bias)), tensor({4, 4}), tensor({4, 4})}, {}};
  };
  using Libraries = std::array<bool, kWorkspaceLibraries>;
  EXPECT_EQ(addmm({4}).libraries(), (Libraries{true, true}));
  EXPECT_EQ(addmm({4, 4}).libraries(), (Libraries{true, false}));
  EXPECT_EQ((Call{"aten.mm", {tensor({4, 4}), tensor({4, 4})}, {}}).libraries(),
            (Libraries{true, false}));
  EXPECT_EQ((Call{"aten.add", {tensor({4})}, {}}).libraries(), (Libraries{false, false}));
}

// Measured: 4 bytes for each column, 128 times for each block, and as many blocks for a column as
// keep 132 multiprocessors busy; nothing where there are few rows.
TEST(CudaMemoryTest, ASumOverRowsIsSplit) {
  struct Row {
    std::int64_t rows, columns, blocks;
  };
  for (const auto& [rows, columns, blocks] :
       {Row{1024, 768, 16}, Row{8192, 768, 128}, Row{32768, 768, 352}, Row{8192, 2304, 118},
        Row{8192, 3072, 88}, Row{8192, 4096, 66}}) {
    const Call sum{"aten.sum", {tensor({rows, columns})}, {tensor({1, columns})}};
    const auto pieces = sum.temporaries(kH100);
    ASSERT_EQ(pieces.size(), 2u) << columns;
    EXPECT_EQ(pieces[0], 4 * columns * 128 * blocks) << rows << " x " << columns;
  }
  EXPECT_TRUE(
      (Call{"aten.sum", {tensor({64, 768})}, {tensor({1, 768})}}).temporaries(kH100).empty());
  EXPECT_TRUE(
      (Call{"aten.sum", {tensor({8192, 768})}, {tensor({8192, 1})}}).temporaries(kH100).empty());
  EXPECT_TRUE((Call{"aten.sum", {tensor({8192, 768})}, {tensor({1, 768})}}).temporaries({}).empty())
      << "a card whose multiprocessors are not known";
}

TEST(CudaMemoryTest, AnEmbeddingsGradientSortsItsIndices) {
  const auto backward = [](std::int64_t count) {
    return Call{"aten.embedding_dense_backward",
                {tensor({count, 768}), tensor({count}, DType::kI64)},
                {tensor({50257, 768})}};
  };
  EXPECT_TRUE(backward(3072).temporaries(kH100).empty());
  const auto pieces = backward(8192).temporaries(kH100);
  ASSERT_EQ(pieces.size(), 7u);
  EXPECT_EQ(pieces[0], 8192 * 8);
  EXPECT_EQ(pieces[6], (8192 / 10 + 8192) * 768 * 4);
}

TEST(CudaMemoryTest, FlashAttentionsBackwardExpandsGroupedKeys) {
  const auto backward = [](std::int64_t key_heads) {
    return Call{
        "aten._scaled_dot_product_flash_attention_backward",
        {tensor({1, 32, 8192, 128}), tensor({1, 32, 8192, 128}), tensor({1, key_heads, 8192, 128})},
        {tensor({1, 32, 8192, 128})}};
  };
  EXPECT_EQ(backward(32).temporaries(kH100),
            (std::vector<std::int64_t>{32 * 8192 * 4, 8192 * 32 * 128 * 4}));
  EXPECT_EQ(backward(8).temporaries(kH100).size(), 4u);
}

// Measured on an H100: what PyTorch 2.11's allocator gave out in each call.
TEST(CudaMemoryTest, CudnnsAttentionKeepsSumsAndGradientsInOneBlock) {
  const auto backward = [](std::int64_t batch, std::int64_t heads, std::int64_t of_keys,
                           std::int64_t tokens, std::int64_t width) {
    const Layout query = tensor({batch, heads, tokens, width}, DType::kBF16);
    const Layout key = tensor({batch, of_keys, tokens, width}, DType::kBF16);
    return Call{
        "aten._scaled_dot_product_cudnn_attention_backward", {query, query, key, key}, {query}}
        .temporaries(kH100);
  };
  using Pieces = std::vector<std::int64_t>;
  EXPECT_EQ(backward(16, 12, 12, 1024, 64), (Pieces{51118336}));
  EXPECT_EQ(backward(8, 16, 16, 512, 128), (Pieces{33816832}));
  EXPECT_EQ(backward(2, 12, 12, 1000, 80), (Pieces{7776256})) << "not rounded up";
  EXPECT_EQ(backward(1, 32, 32, 4096, 128), (Pieces{67633408}));
  EXPECT_EQ(backward(4, 32, 8, 2048, 64), (Pieces{135266560})) << "grouped";
  EXPECT_EQ(backward(1, 32, 8, 8192, 128), (Pieces{269484288})) << "grouped";
  const Layout query = tensor({16, 12, 1024, 64}, DType::kBF16);
  EXPECT_EQ(
      (Call{"aten._scaled_dot_product_cudnn_attention", {query, query, query}, {query}}.temporaries(
          kH100)),
      (Pieces{256}));
}

struct EfficientBackward {
  DType dtype;
  std::int64_t batch, heads, queries, keys, width;

  std::vector<std::int64_t> temporaries() const {
    const Layout query = tensor({batch, heads, queries, width}, dtype);
    const Layout key = tensor({batch, heads, keys, width}, dtype);
    return Call{
        "aten._scaled_dot_product_efficient_attention_backward", {query, query, key, key}, {query}}
        .temporaries(kH100);
  }
};

// Seen of PyTorch 2.11's own code, whose launches did nothing, on cards of 8.0 and 9.0 alike.
TEST(CudaMemoryTest, EfficientAttentionsBackwardKeepsSumsAndTiles) {
  using Pieces = std::vector<std::int64_t>;
  constexpr DType kSingle = DType::kF32;
  constexpr DType kHalf = DType::kBF16;
  const std::vector<std::pair<EfficientBackward, Pieces>> seen = {
      {{kSingle, 32, 8, 512, 512, 64}, {33554432, 524288, 524288, -2, -1, 33587200, -3}},
      {{kSingle, 2, 4, 100, 70, 72}, {230400, 3200, 3200, -2, -1, 524544, -3}},
      {{kSingle, 1, 2, 2048, 2048, 256}, {4194304, 16384, 16384, -2, -1, 4196352, -3}},
      {{kSingle, 1, 1, 512, 512, 64}, {131072, 2048, -1, 131200, -2}},
      {{kHalf, 32, 8, 512, 512, 64}, {524288, 33587200, -1}},
      {{kHalf, 32, 8, 512, 512, 128}, {524288, 67125248, -1}},
      {{kHalf, 2, 4, 100, 70, 96}, {3200, 524416, -1}},
      {{kHalf, 32, 8, 512, 512, 160}, {524288, 134266880, -1}},
      {{kHalf, 2, 8, 512, 512, 160}, {32768, 23071744, -1}},
      {{kHalf, 2, 8, 128, 1024, 256}, {8192, 27264000, -1}},
      {{kHalf, 16, 16, 96, 96, 160}, {98304, 58732544, -1}},
      {{kHalf, 1, 2, 2048, 2048, 256}, {16384, 12584960, -1}}};
  for (const auto& [call, pieces] : seen) {
    EXPECT_EQ(call.temporaries(), pieces)
        << call.batch << " x " << call.heads << " x " << call.queries << " x " << call.width;
  }
}

TEST(CudaMemoryTest, SoftmaxsBackwardMultipliesFirst) {
  const Layout scores = tensor({8, 12, 1024, 1024});
  const Call backward{"aten._softmax_backward_data", {scores, scores}, {scores}};
  EXPECT_EQ(backward.temporaries(kH100), std::vector<std::int64_t>{201326592});
  EXPECT_FALSE(takes_cuda_memory("aten._log_softmax_backward_data"));
}

TEST(CudaMemoryTest, DropoutMakesItsMaskFirst) {
  EXPECT_TRUE(makes_last_result_first("aten.native_dropout"));
  EXPECT_FALSE(makes_last_result_first("aten.native_dropout_backward"));
}

TEST(CudaMemoryTest, OperatorsThatLackTensorsTakeNothing) {
  for (const char* op :
       {"aten.sum", "aten.mean", "aten.embedding_dense_backward",
        "aten._scaled_dot_product_flash_attention_backward",
        "aten._scaled_dot_product_cudnn_attention_backward",
        "aten._scaled_dot_product_efficient_attention_backward", "aten._softmax_backward_data"}) {
    EXPECT_TRUE(takes_cuda_memory(op));
    EXPECT_TRUE((Call{op, {}, {}}).temporaries(kH100).empty()) << op;
    EXPECT_TRUE((Call{op, {tensor({4, 4})}, {tensor({4})}}).temporaries(kH100).empty()) << op;
  }
  EXPECT_FALSE(takes_cuda_memory("aten.add"));
}

}  // namespace
}  // namespace ferry
