#include "formats/op_costs.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "formats/layout.h"
#include "formats/op_products.h"
#include "formats/op_puts.h"

namespace ferry {
namespace {

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 12> kShapeOnly = {
    "aten.empty_like", "aten.zeros_like", "aten.ones_like", "aten.full_like",
    "aten.rand_like",  "aten.randn_like", "aten.new_empty", "aten.new_empty_strided",
    "aten.new_zeros",  "aten.new_ones",   "aten.new_full",  "aten.lift_fresh"};
constexpr std::array<std::string_view, 5> kWritesNothing = {"aten.empty", "aten.empty_like",
                                                            "aten.empty_strided", "aten.new_empty",
                                                            "aten.new_empty_strided"};
constexpr std::array<std::string_view, 8> kOverwrites = {
    "aten.copy_",    "aten.zero_",      "aten.fill_",   "aten.normal_",
    "aten.uniform_", "aten.bernoulli_", "aten.random_", "aten.exponential_"};
constexpr std::array<std::string_view, 3> kGathers = {"aten.embedding", "aten.index_select",
                                                      "aten.gather"};
constexpr std::array<std::string_view, 2> kLosses = {"aten.nll_loss_forward",
                                                     "aten.nll_loss2d_forward"};
constexpr std::array<std::string_view, 2> kLossGradients = {"aten.nll_loss_backward",
                                                            "aten.nll_loss2d_backward"};

// Returns the bytes that the call reads of argument `i`. A gather reads as much of its table as it
// returns. A loss reads one element of each row. The gradient of a loss needs only the shape of the
// loss's input.
std::int64_t bytes_read(const OpCall& call, std::uint32_t i) {
  if (i == 1 && among(kLossGradients, call.name)) return 0;
  const std::int64_t all = distinct_bytes(*call.in[i]);
  if (i > 0 || call.out.empty()) return all;
  if (among(kGathers, call.name)) return std::min(all, distinct_bytes(*call.out[0]));
  if (among(kLosses, call.name) && call.in.size() > 1) {
    return std::min(all, elements_of(call.in[1]->shape) * itemsize(call.in[0]->dtype));
  }
  return all;
}

std::int64_t bytes_read(const OpCall& call) {
  if (reads_shapes_only(call.name)) return 0;
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < call.in.size(); ++i) {
    const bool written = std::find(call.writes.begin(), call.writes.end(), i) != call.writes.end();
    if (written && overwrites(call.name)) continue;
    bytes += bytes_read(call, i);
  }
  return bytes;
}

std::int64_t bytes_written(const OpCall& call) {
  if (writes_nothing(call.name)) return 0;
  std::int64_t bytes = 0;
  for (const Layout* out : call.out) bytes += distinct_bytes(*out);
  for (const std::uint32_t position : call.writes) bytes += distinct_bytes(*call.in[position]);
  return bytes;
}

// The traffic of other kernels than the one that reads the arguments and writes the results.
using Beside = OpTraffic;

class CallBytes {
 public:
  explicit CallBytes(const OpCall& call) : call_(call) {}
  std::int64_t in(std::size_t i) const {
    return i < call_.in.size() ? distinct_bytes(*call_.in[i]) : 0;
  }
  std::int64_t out() const { return call_.out.empty() ? 0 : distinct_bytes(*call_.out[0]); }
  // The bytes of as many elements in single precision.
  std::int64_t single(std::size_t i) const {
    return i < call_.in.size() ? in(i) / itemsize(call_.in[i]->dtype) * 4 : 0;
  }

 private:
  const OpCall& call_;
};

// The backward of an embedding (EmbeddingBackwardKernel.cu, cub's radix sort). One kernel adds a
// few rows to zeros. More rows are sorted by their index (8 passes over its 8 bytes). The rows of
// each index are cut into parts of ten; each part is summed in single precision, and then the sums
// of the parts. How often an index occurs is not known, so all indices count as different if there
// are enough rows.
Beside beside_embedding(const OpCall& call) {
  if (call.in.size() < 2 || call.out.empty() || call.in[0]->shape.empty()) return {};
  constexpr std::int64_t kUnsorted = 3072;
  constexpr std::int64_t kSortingKernels = 19;
  constexpr std::int64_t kPasses = 8;
  constexpr std::int64_t kKeyAndPlace = 16;
  const std::int64_t count = elements_of(call.in[1]->shape);
  const std::int64_t columns = call.in[0]->shape.back();
  const std::int64_t rows = elements_of(call.out[0]->shape) / std::max<std::int64_t>(columns, 1);
  const std::int64_t touched = std::min(count, rows);
  const std::int64_t added = touched * columns * itemsize(call.out[0]->dtype);
  if (count <= kUnsorted) return {1, added, added};
  const std::int64_t parts = std::min(count, count / 10 + touched) * columns * 4;
  const std::int64_t sorted = kPasses * count * kKeyAndPlace;
  return {1 + kSortingKernels, sorted + parts, sorted + parts + added};
}

Beside beside_attention(const OpCall& call, const CallBytes& bytes) {
  if (call.in.size() < 3 || call.in[1]->shape.size() < 4 || call.in[2]->shape.size() < 4) return {};
  const Layout &query = *call.in[1], &key = *call.in[2];
  if (call.name == "aten._scaled_dot_product_flash_attention_backward" ||
      call.name == "aten._scaled_dot_product_cudnn_attention_backward") {
    // The first kernel makes sums of products, and the last one converts the gradients of the
    // queries, which were added up in fp32. Grouped keys and values have a gradient for each head
    // of the queries; these are summed. (On an H100, cuDNN was observed to run as many kernels that
    // do the same.)
    Beside beside{2, bytes.in(0) + 2 * bytes.in(1), 2 * bytes.in(1)};
    if (query.shape[1] != key.shape[1] && key.shape[1] > 0) {
      const std::int64_t each = bytes.in(2) / key.shape[1] * query.shape[1];
      beside = {4, beside.read_bytes + 2 * each, beside.written_bytes + 2 * each};
    }
    return beside;
  }
  if (call.name == "aten._scaled_dot_product_efficient_attention_backward") {
    // The gradients of the queries are added up in fp32, starting from zeros. For fp32 tensors,
    // separate operators multiply and sum first.
    const std::int64_t gradients = bytes.single(1);
    if (query.dtype != DType::kF32) return {1, gradients, gradients};
    return {4, 2 * bytes.in(0) + gradients, bytes.in(0) + gradients};
  }
  return {};
}

Beside beside_norm(const OpCall& call, const CallBytes& bytes) {
  const std::string_view name = call.name;
  const std::size_t outs = call.out.size();
  // One kernel for the gradient of the input, and one for those of the weight and the bias.
  if ((name == "aten.native_layer_norm_backward" || name == "aten._fused_rms_norm_backward") &&
      outs > 1) {
    return {1, bytes.in(0) + bytes.in(1), 0};
  }
  // Kernels that sum over groups or channels, and then kernels that use the sums.
  if (name == "aten.native_group_norm" || (name == "aten.native_batch_norm" && outs > 1)) {
    return {2, bytes.in(0), 0};
  }
  if (name == "aten.native_group_norm_backward") {
    return {outs > 1 ? 4 : 3, bytes.in(0) + bytes.in(1), 0};
  }
  if (name == "aten.native_batch_norm_backward") {
    return {0, bytes.in(0) + bytes.in(1), 0};  // in one kernel
  }
  return {};
}

Beside beside_one_kernel(const OpCall& call) {
  const std::string_view name = call.name;
  const CallBytes bytes(call);
  const std::int64_t out = bytes.out();
  const auto outs = static_cast<std::int64_t>(call.out.size());
  // The tensor is copied, and the operator then works in place. cuBLASLt adds a vector without
  // this.
  if (name == "aten.masked_fill" || name == "aten.baddbmm" ||
      (name == "aten.addmm" && !call.in.empty() && call.in[0]->shape.size() != 1)) {
    return {1, out, out};
  }
  // The gradient is multiplied by the result, and then the kernel of the softmax runs.
  if (name == "aten._softmax_backward_data") return {1, bytes.in(0) + bytes.in(1), bytes.in(0)};
  if (name == "aten.convolution" && call.in.size() > 2) return {1, out, out};  // adds the bias
  if (name == "aten.convolution_backward" && outs > 1) {
    return {outs - 1, (outs - 1) * bytes.in(0), 0};
  }
  // First zeros are written, and then the elements that are not 0.
  if (among(kLossGradients, name)) return {1, 0, 0};
  if (name == "aten.max_pool2d_with_indices_backward") return {1, 0, out};
  if (name == "aten.slice_backward" || name == "aten.select_backward" ||
      name == "aten.constant_pad_nd") {
    return {1, 0, bytes.in(0)};
  }
  if (name == "aten.embedding_dense_backward") return beside_embedding(call);
  if (is_attention(name)) return beside_attention(call, bytes);
  return beside_norm(call, bytes);
}

}  // namespace

bool reads_shapes_only(std::string_view label) { return among(kShapeOnly, label); }
bool writes_nothing(std::string_view label) { return among(kWritesNothing, label); }
bool overwrites(std::string_view label) {
  return among(kOverwrites, label) || label.starts_with(kFlashAttn);
}

OpCosts op_costs(const OpCall& call) {
  OpTraffic traffic{1, bytes_read(call), bytes_written(call)};
  if (const auto put = put_traffic(call)) {
    traffic = *put;
  } else {
    traffic += beside_one_kernel(call);
  }
  return {op_flops(call), traffic.read_bytes, traffic.written_bytes, traffic.kernels,
          op_products(call)};
}

}  // namespace ferry
