#include "formats/op_costs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "formats/layout.h"

namespace ferry {
namespace {

std::int64_t distinct_bytes(const Layout& layout) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::int64_t size = layout.shape[i];
    if (layout.strides[i] != 0 || size == 0) count *= size;
  }
  return count * itemsize(layout.dtype);
}

std::int64_t product(const std::vector<std::int64_t>& sizes, std::size_t from = 0) {
  if (from >= sizes.size()) return 1;
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(from), sizes.end(),
                         std::int64_t{1}, std::multiplies<>());
}

// Every element of the output takes a multiply and an add for each weight of its channel.
std::int64_t convolution_flops(const std::vector<std::int64_t>& output, const Layout& weight) {
  return 2 * product(output) * product(weight.shape, 1);
}

// The pairs of a query and a key that a causal mask leaves: its diagonal begins at the first of
// both.
std::int64_t causal_pairs(std::int64_t queries, std::int64_t keys) {
  const std::int64_t triangle = std::min(queries, keys);
  return triangle * (triangle + 1) / 2 + (queries - triangle) * keys;
}

// Counts queries times keys, and that product times values.
std::int64_t attention_flops(const OpCall& call, std::size_t query) {
  if (call.in.size() < query + 3) return 0;
  const auto& q = call.in[query]->shape;
  const auto& k = call.in[query + 1]->shape;
  const auto& v = call.in[query + 2]->shape;
  if (q.size() < 2 || k.size() < 2 || v.empty()) return 0;
  const std::int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
  const std::int64_t heads = product(q) / std::max<std::int64_t>(queries * q.back(), 1);
  const std::int64_t pairs = call.is_causal ? causal_pairs(queries, keys) : queries * keys;
  return 2 * heads * pairs * (q.back() + v.back());
}

// At what power of 2, of at most 16 bytes, each row of a matrix begins, whichever of its last two
// dimensions the rows lie along. One that has gaps in both is copied before it is multiplied.
std::int64_t aligned_bytes(const Layout& layout) {
  const std::size_t dims = layout.shape.size();
  const bool by_columns = layout.strides[dims - 1] != 1 && layout.strides[dims - 2] == 1;
  const bool is_copied = layout.strides[dims - 1] != 1 && layout.strides[dims - 2] != 1;
  std::int64_t places = layout.offset;
  for (std::size_t i = 0; i < dims; ++i) {
    const bool along = i == dims - (by_columns ? 2 : 1);
    if (!along && layout.shape[i] > 1) places |= layout.strides[i];
  }
  const std::int64_t bytes = is_copied ? 16 : places * itemsize(layout.dtype) | 16;
  return std::max<std::int64_t>(bytes & -bytes, 2);
}

MatrixProduct matrix_product(const OpCall& call) {
  const bool adds = call.name == "aten.addmm" || call.name == "aten.baddbmm";
  if (!adds && call.name != "aten.mm" && call.name != "aten.bmm") return {};
  const std::size_t first = adds ? 1 : 0;
  if (call.in.size() < first + 2) return {};
  const Layout &a = *call.in[first], &b = *call.in[first + 1];
  const std::size_t dims = a.shape.size();
  if (dims < 2 || b.shape.size() != dims) return {};
  const std::int64_t rows = product(a.shape) / std::max<std::int64_t>(a.shape[dims - 1], 1);
  const std::int64_t m = a.shape[dims - 2];
  if (rows == 0 || product(b.shape) == 0) return {};
  std::int64_t aligned = std::min(aligned_bytes(a), aligned_bytes(b));
  if (!call.out.empty() && call.out[0]->shape.size() == dims) {
    aligned = std::min(aligned, aligned_bytes(*call.out[0]));
  }
  return {rows / m, m, b.shape[dims - 1], a.shape[dims - 1], aligned};
}

std::int64_t flops(const OpCall& call, const MatrixProduct& shape) {
  const std::string_view name = call.name;
  const auto& in = call.in;
  if (shape.batch > 0) return 2 * shape.batch * shape.m * shape.n * shape.k;
  if (name == "aten.convolution" && in.size() >= 2 && !call.out.empty()) {
    return convolution_flops(call.out[0]->shape, *in[1]);
  }
  if (name == "aten.convolution_backward" && in.size() >= 3) {
    std::int64_t passes = 0;  // one for the input's gradient, one for the weight's
    for (const Layout* out : call.out) passes += out->shape.size() == in[1]->shape.size();
    return passes * convolution_flops(in[0]->shape, *in[2]);
  }
  if (is_attention(name)) {
    // Backward has five matmuls, forward has two.
    return name.ends_with("_backward") ? attention_flops(call, 1) * 5 / 2
                                       : attention_flops(call, 0);
  }
  return 0;
}

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 10> kShapeOnly = {
    "aten.empty_like", "aten.zeros_like", "aten.ones_like", "aten.full_like", "aten.rand_like",
    "aten.randn_like", "aten.new_empty",  "aten.new_zeros", "aten.new_ones",  "aten.new_full"};
constexpr std::array<std::string_view, 4> kWritesNothing = {"aten.empty", "aten.empty_like",
                                                            "aten.empty_strided", "aten.new_empty"};
constexpr std::array<std::string_view, 7> kOverwrites = {
    "aten.copy_",    "aten.zero_",      "aten.fill_",  "aten.normal_",
    "aten.uniform_", "aten.bernoulli_", "aten.random_"};
constexpr std::array<std::string_view, 4> kGathers = {"aten.embedding", "aten.index_select",
                                                      "aten.gather", "aten.nll_loss_forward"};

std::int64_t bytes_read(const OpCall& call) {
  if (reads_shapes_only(call.name)) return 0;
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < call.in.size(); ++i) {
    const bool written = std::find(call.writes.begin(), call.writes.end(), i) != call.writes.end();
    if (written && overwrites(call.name)) continue;
    std::int64_t part = distinct_bytes(*call.in[i]);
    // A gather reads as much of its table as it returns.
    if (i == 0 && among(kGathers, call.name) && !call.out.empty()) {
      part = std::min(part, distinct_bytes(*call.out[0]));
    }
    bytes += part;
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

// What an operator runs beside the one kernel that reads its arguments and writes its results.
struct Beside {
  std::int64_t kernels = 0;
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
};

class CallBytes {
 public:
  explicit CallBytes(const OpCall& call) : call_(call) {}
  std::int64_t in(std::size_t i) const {
    return i < call_.in.size() ? distinct_bytes(*call_.in[i]) : 0;
  }
  std::int64_t out() const { return call_.out.empty() ? 0 : distinct_bytes(*call_.out[0]); }
  // Of as many elements in single precision.
  std::int64_t single(std::size_t i) const {
    return i < call_.in.size() ? in(i) / itemsize(call_.in[i]->dtype) * 4 : 0;
  }

 private:
  const OpCall& call_;
};

// Few rows are added to zeros by one kernel. More are sorted by their index (8 passes over its 8
// bytes), the rows of each index are cut into parts of ten, these are summed in single precision,
// and then each other (EmbeddingBackwardKernel.cu, cub's radix sort). Each row is taken for one of
// its own where there are as many: how often an index comes is not known.
Beside beside_embedding(const OpCall& call) {
  if (call.in.size() < 2 || call.out.empty() || call.in[0]->shape.empty()) return {};
  constexpr std::int64_t kUnsorted = 3072;
  constexpr std::int64_t kSortingKernels = 19;
  constexpr std::int64_t kPasses = 8;
  constexpr std::int64_t kKeyAndPlace = 16;
  const std::int64_t count = product(call.in[1]->shape);
  const std::int64_t columns = call.in[0]->shape.back();
  const std::int64_t rows = product(call.out[0]->shape) / std::max<std::int64_t>(columns, 1);
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
  if (call.name == "aten._scaled_dot_product_flash_attention_backward") {
    // Sums of products first; last the queries' gradients, which were added up in fp32. Of grouped
    // keys and values there is a gradient for each head of the queries, to be summed.
    Beside beside{2, bytes.in(0) + 2 * bytes.in(1), 2 * bytes.in(1)};
    if (query.shape[1] != key.shape[1] && key.shape[1] > 0) {
      const std::int64_t each = bytes.in(2) / key.shape[1] * query.shape[1];
      beside = {4, beside.read_bytes + 2 * each, beside.written_bytes + 2 * each};
    }
    return beside;
  }
  if (call.name == "aten._scaled_dot_product_efficient_attention_backward") {
    // The queries' gradients are added up in fp32, from zeros. Where they are of fp32 anyway,
    // operators multiply and sum first.
    const std::int64_t gradients = bytes.single(1);
    if (query.dtype != DType::kF32) return {1, gradients, gradients};
    return {4, 2 * bytes.in(0) + gradients, bytes.in(0) + gradients};
  }
  return {};
}

Beside beside_norm(const OpCall& call, const CallBytes& bytes) {
  const std::string_view name = call.name;
  const std::size_t outs = call.out.size();
  // One for the input's gradient, one for the weight's and the bias's.
  if ((name == "aten.native_layer_norm_backward" || name == "aten._fused_rms_norm_backward") &&
      outs > 1) {
    return {1, bytes.in(0) + bytes.in(1), 0};
  }
  // Sums over groups or channels, then what they make of them.
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
  // A copy of the tensor, and then in place; a vector is added by cuBLASLt instead.
  if (name == "aten.masked_fill" || name == "aten.baddbmm" ||
      (name == "aten.addmm" && !call.in.empty() && call.in[0]->shape.size() != 1)) {
    return {1, out, out};
  }
  // The gradient times the result, and then what a softmax does with it.
  if (name == "aten._softmax_backward_data") return {1, bytes.in(0) + bytes.in(1), bytes.in(0)};
  if (name == "aten.convolution" && call.in.size() > 2) return {1, out, out};  // adds the bias
  if (name == "aten.convolution_backward" && outs > 1) {
    return {outs - 1, (outs - 1) * bytes.in(0), 0};
  }
  // Zeros, and then what is not 0.
  if (name == "aten.nll_loss_backward" || name == "aten.nll_loss2d_backward") return {1, 0, 0};
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
bool overwrites(std::string_view label) { return among(kOverwrites, label); }

OpCosts op_costs(const OpCall& call) {
  const MatrixProduct shape = matrix_product(call);
  const Beside beside = beside_one_kernel(call);
  return {flops(call, shape), bytes_read(call) + beside.read_bytes,
          bytes_written(call) + beside.written_bytes, 1 + beside.kernels, shape};
}

}  // namespace ferry
