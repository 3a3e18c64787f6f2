#include "scenarios/cuda_memory.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <initializer_list>
#include <string>

#include "formats/error.h"
#include "formats/layout.h"
#include "formats/limits.h"

namespace ferry {
namespace {

using Layouts = std::span<const Layout* const>;

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kHopperWorkspace = 4096 * 8 * kKiB;                 // ":4096:8"
constexpr std::int64_t kUsualWorkspace = 4096 * 2 * kKiB + 16 * 8 * kKiB;  // ":4096:2:16:8"
constexpr std::int64_t kLtWorkspace = 1024 * kKiB;

constexpr std::array<std::string_view, 12> kMatmuls = {
    "aten.mm",     "aten.bmm",       "aten.addmm", "aten.baddbmm", "aten._addmm_activation",
    "aten.addmv",  "aten.mv",        "aten.dot",   "aten.vdot",    "aten._int_mm",
    "aten.addbmm", "aten._scaled_mm"};
constexpr std::string_view kEmbeddingBackward = "aten.embedding_dense_backward";
constexpr std::string_view kFlashBackward = "aten._scaled_dot_product_flash_attention_backward";
constexpr std::string_view kCudnn = "aten._scaled_dot_product_cudnn_attention";
constexpr std::string_view kCudnnBackward = "aten._scaled_dot_product_cudnn_attention_backward";
constexpr std::string_view kEfficientBackward =
    "aten._scaled_dot_product_efficient_attention_backward";
constexpr std::string_view kSoftmaxBackward = "aten._softmax_backward_data";

bool is_matmul(std::string_view op) {
  return std::find(kMatmuls.begin(), kMatmuls.end(), op) != kMatmuls.end();
}
bool is_sum(std::string_view op) { return op == "aten.sum" || op == "aten.mean"; }

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t rounded_up(std::int64_t a, std::int64_t to) { return divided_up(a, to) * to; }
std::int64_t power_of_two_within(std::int64_t number) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(number)));
}

// Multiplies sizes without overflow. A program's file may have any sizes, so the result is limited
// to the most that an op may read.
std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (factor != 0 && result > limits::kBytes / factor) return limits::kBytes;
    result *= factor;
  }
  return result;
}

// The temporaries of a reduction from [rows, columns] to [columns] that uses several blocks of
// threads for each column. Reduce.cuh allocates 32 * vector partial sums for each block, although
// one would be enough.
std::vector<std::int64_t> of_rows(std::int64_t rows, std::int64_t columns,
                                  std::int64_t element_bytes, const Multiprocessors& card) {
  constexpr std::int64_t kThreads = 512;
  constexpr std::int64_t kWarp = 32;
  constexpr std::int64_t kValuesLeast = 16;
  constexpr std::int64_t kValuesMost = 256;
  std::int64_t vector = 4;  // columns that a thread sums
  while (columns % vector != 0) vector /= 2;
  const std::int64_t threads_most = kThreads / vector;
  const std::int64_t wide = std::min(power_of_two_within(columns / vector), threads_most);
  const std::int64_t high = std::min(power_of_two_within(rows), threads_most);
  std::int64_t width = std::min(wide, kWarp);
  const std::int64_t height = std::min(high, threads_most / width);
  width = std::min(wide, threads_most / height);

  // The rows are split among the warps of a block. If a thread then has many rows, they are also
  // split among several blocks.
  if (rows < std::min(height * kValuesLeast, kValuesMost)) return {};
  const std::int64_t values = divided_up(rows, height);
  const std::int64_t blocks_at_once = card.count * (card.threads_each / (width * height));
  const std::int64_t blocks = divided_up(columns / vector, width);
  if (values < kValuesMost || blocks > blocks_at_once) return {};
  const std::int64_t each =
      std::max(std::min(divided_up(blocks_at_once, blocks), divided_up(values, kValuesLeast)),
               divided_up(values, kValuesMost));
  if (each == 1) return {};
  constexpr std::int64_t kSemaphore = 4;
  return {product({element_bytes, columns, each, width, vector}), kSemaphore * blocks};
}

// The temporaries of a sum over leading dimensions of a dense tensor. Other sums need little
// memory.
std::vector<std::int64_t> of_sum(const Layout& input, const Layout& output,
                                 const Multiprocessors& card) {
  const std::int64_t columns = numel(output.shape);
  const std::int64_t elements = numel(input.shape);
  const bool dense = input.strides == contiguous_strides(input.shape);
  if (!dense || columns < 2 || elements <= columns) return {};
  std::int64_t kept = 1;
  for (std::size_t dim = input.shape.size(); dim-- > 0 && kept < columns;) kept *= input.shape[dim];
  const bool keeps_the_last = output.shape.back() == input.shape.back() && input.shape.back() > 1;
  if (kept != columns || !keeps_the_last) return {};
  const bool half = input.dtype == DType::kF16 || input.dtype == DType::kBF16;
  const std::int64_t bytes = half ? 4 : itemsize(input.dtype);  // sums are single
  return of_rows(elements / columns, columns, bytes, card);
}

// The backward of an embedding sorts the indices. It sums each run of equal indices in parts of ten
// rows, in single precision.
std::vector<std::int64_t> of_embedding(const Layout& gradient, const Layout& indices,
                                       std::int64_t rows) {
  constexpr std::int64_t kUnsorted = 3072;  // up to so many indices are not sorted
  constexpr std::int64_t kRowsOfAPart = 10;
  constexpr std::int64_t kWarp = 32;
  constexpr int kLists = 6;  // lists of 64-bit numbers: sorted indices, positions, runs, parts
  const std::int64_t count = numel(indices.shape);
  if (count <= kUnsorted) return {};
  const std::int64_t parts = count / kRowsOfAPart + std::min(count, rows);
  std::vector<std::int64_t> pieces(kLists, product({count, 8}));
  pieces.push_back(product({parts, rounded_up(gradient.shape.back(), kWarp), 4}));
  return pieces;
}

std::vector<std::int64_t> of_flash_backward(const Layout& query, const Layout& key) {
  const std::int64_t batch = query.shape[0];
  const std::int64_t heads = query.shape[1];
  const std::int64_t length = rounded_up(query.shape[2], 128);
  const std::int64_t head = rounded_up(query.shape[3], query.shape[3] <= 128 ? 32 : 64);
  std::vector<std::int64_t> pieces = {
      product({batch, heads, length, 4}),         // the softmax's sums
      product({batch, length, heads, head, 4})};  // the query's gradient
  if (key.shape[1] != heads) {  // gradients of keys and values for each head of the query
    pieces.insert(pieces.end(), 2, product({batch, key.shape[2], heads, query.shape[3], 2}));
  }
  return pieces;
}

// The extra bytes of cuDNN's attention. Its forward and its backward allocate one block each, as
// observed on an H100 (PyTorch 2.11, cuDNN 9.19). In backward the block has the same parts as flash
// attention's, not rounded up, and these bytes.
constexpr std::int64_t kCudnnOwn = 256;

std::vector<std::int64_t> of_cudnn_backward(const Layout& query, const Layout& key) {
  const std::int64_t sums = product({query.shape[0], query.shape[1], query.shape[2], 4});
  std::int64_t bytes = sums + product({numel(query.shape), 4}) + kCudnnOwn;
  if (key.shape[1] != query.shape[1]) {
    const std::int64_t heads = query.shape[1];
    bytes += product({2, key.shape[0], heads, key.shape[2], key.shape[3], 2});
  }
  return {bytes};
}

// The tiles in which the backward of memory-efficient attention stores gradients in single
// precision, by the width of a head. Observed on compute capability 8.0 and 9.0. Cards of 7.5 and
// less have other kernels, which were not examined; the same tiles are assumed.
struct EfficientTiles {
  std::int64_t rows = 64;  // rows of the query in a tile
  std::int64_t columns = 64;
  bool splits_keys = false;  // several blocks compute gradients of the same keys, to be added up
};

EfficientTiles tiles_of(DType dtype, std::int64_t head) {
  if (head <= 64) return {};
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return {128, half && head <= 128 ? 128 : 64, half && head > 128};
}

// The workspace has, for each batch and head, the query's gradient in tiles, each with a lock, and
// the gradients of keys and values, once for each block that works on them.
std::int64_t efficient_workspace(const Layout& query, const Layout& key) {
  constexpr std::int64_t kTileHeader = 16;
  constexpr std::int64_t kKeysOfABlock = 64;
  constexpr std::int64_t kBlocksAtOnce = 200;
  const std::int64_t head = query.shape[3];
  const std::int64_t groups = product({query.shape[0], query.shape[1]});
  const EfficientTiles tiles = tiles_of(query.dtype, head);
  std::int64_t bytes =
      product({divided_up(query.shape[2], tiles.rows), divided_up(head, tiles.columns),
               kTileHeader + tiles.rows * tiles.columns * 4});
  if (tiles.splits_keys) {
    const std::int64_t splits =
        std::max(std::min(divided_up(key.shape[2], kKeysOfABlock),
                          kBlocksAtOnce / std::max(groups, std::int64_t{1})),
                 std::int64_t{1});
    bytes += product({2, splits, kKeysOfABlock, rounded_up(head, 128), 4});
  }
  return product({groups, bytes});
}

std::vector<std::int64_t> of_efficient_backward(const Layout& gradient, const Layout& query,
                                                const Layout& key) {
  const std::int64_t heads = query.shape[1];
  const std::int64_t sums = product({query.shape[0], heads, query.shape[2], 4});
  const std::int64_t workspace = efficient_workspace(query, key);
  // In half precision the kernel multiplies and sums itself. Otherwise separate operators do so,
  // and the last one stores the sums by head.
  if (query.dtype != DType::kF32) return {sums, workspace, -1};
  const std::int64_t products = product({numel(gradient.shape), 4});
  if (heads == 1 || query.shape[2] == 1) return {products, sums, -1, workspace, -2};
  return {products, sums, sums, -2, -1, workspace, -3};
}

const Layout* at(Layouts layouts, std::size_t number) {
  return number < layouts.size() ? layouts[number] : nullptr;
}

std::int64_t threads_of(std::int64_t compute_capability) {
  switch (compute_capability) {
    case 70:
    case 80:
    case 90:
    case 100:
      return 2048;
    case 75:
      return 1024;
    default:
      return 1536;
  }
}

}  // namespace

std::int64_t parse_workspace_config(std::string_view text, const std::string& where) {
  const auto refuse = [&where] {
    throw InputError(where, 0, "expected pairs of KiB and a count, such as \":4096:2:16:8\"");
  };
  std::int64_t sum = 0;
  const char* next = text.data();
  const char* const end = next + text.size();
  const auto number = [&]() -> std::int64_t {
    std::int64_t value = 0;
    if (next == end || *next != ':') refuse();
    const auto [after, error] = std::from_chars(next + 1, end, value);
    if (error != std::errc() || value < 0 || value > limits::kBytes / kKiB) refuse();
    next = after;
    return value;
  };
  do {
    const std::int64_t kib = number();
    const std::int64_t count = number();
    if (kib != 0 && count > (limits::kBytes / kKiB) / kib) refuse();
    sum += kib * count * kKiB;
    if (sum > limits::kBytes) refuse();
  } while (next != end);
  return sum;
}

WorkspaceBytes workspaces_of(const Hardware& hardware, std::optional<std::int64_t> config_bytes) {
  if (hardware.compute_capability == 0) return {};
  const bool hopper = hardware.compute_capability / 10 == 9;
  const std::int64_t bytes = config_bytes.value_or(hopper ? kHopperWorkspace : kUsualWorkspace);
  return {bytes, std::min(bytes, kLtWorkspace)};
}

Multiprocessors multiprocessors_of(const Hardware& hardware) {
  return {hardware.multiprocessors, threads_of(hardware.compute_capability)};
}

bool takes_cuda_memory(std::string_view op) {
  return is_matmul(op) || is_sum(op) || op == kEmbeddingBackward || op == kFlashBackward ||
         op == kCudnn || op == kCudnnBackward || op == kEfficientBackward || op == kSoftmaxBackward;
}

std::array<bool, kWorkspaceLibraries> libraries_of(std::string_view op, Layouts arguments) {
  if (!is_matmul(op)) return {};
  const bool adds = op == "aten.addmm" || op == "aten._addmm_activation";
  const Layout* const bias = at(arguments, 0);
  return {true, adds && bias && bias->shape.size() == 1};
}

std::vector<std::int64_t> temporaries_of(std::string_view op, Layouts arguments, Layouts results,
                                         const Multiprocessors& card) {
  const Layout* const first = at(arguments, 0);
  const Layout* const second = at(arguments, 1);
  const Layout* const third = at(arguments, 2);
  const Layout* const result = at(results, 0);
  if (!first || !result) return {};
  if (is_sum(op)) return of_sum(*first, *result, card);
  if (op == kSoftmaxBackward && second) {  // the gradient times the output
    return {product({numel(first->shape), itemsize(first->dtype)})};
  }
  if (op == kEmbeddingBackward && second && !first->shape.empty() && !result->shape.empty()) {
    return of_embedding(*first, *second, result->shape[0]);
  }
  if (op == kCudnn && !first->shape.empty()) return {kCudnnOwn};
  if (!second || !third || second->shape.size() != 4 || third->shape.size() != 4) return {};
  if (op == kFlashBackward) return of_flash_backward(*second, *third);
  if (op == kCudnnBackward) return of_cudnn_backward(*second, *third);
  if (op == kEfficientBackward) return of_efficient_backward(*first, *second, *third);
  return {};
}

bool makes_last_result_first(std::string_view op) { return op == "aten.native_dropout"; }

}  // namespace ferry
