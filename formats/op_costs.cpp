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

Beside beside_one_kernel(const OpCall& call) {
  const std::string_view name = call.name;
  const auto in = [&](std::size_t i) {
    return i < call.in.size() ? distinct_bytes(*call.in[i]) : 0;
  };
  const std::int64_t out = call.out.empty() ? 0 : distinct_bytes(*call.out[0]);
  const auto outs = static_cast<std::int64_t>(call.out.size());
  // A copy of the tensor, and then in place.
  if (name == "aten.masked_fill" || name == "aten.baddbmm") return {1, out, out};
  // The gradient times the result, and then what a softmax does with it.
  if (name == "aten._softmax_backward_data") return {1, in(0) + in(1), in(0)};
  // One for the input's gradient, one for the weight's and the bias's.
  if (name == "aten.native_layer_norm_backward" && outs > 1) return {1, in(0) + in(1), 0};
  // Sums over groups or channels, then what they make of them.
  if (name == "aten.native_group_norm" || (name == "aten.native_batch_norm" && outs > 1)) {
    return {2, in(0), 0};
  }
  if (name == "aten.native_group_norm_backward") return {3, in(0) + in(1), 0};
  if (name == "aten.native_batch_norm_backward") return {0, in(0) + in(1), 0};  // in one kernel
  if (name == "aten.convolution" && call.in.size() > 2) return {1, out, out};   // adds the bias
  if (name == "aten.convolution_backward" && outs > 1) return {outs - 1, (outs - 1) * in(0), 0};
  // Zeros, and then what is not 0.
  if (name == "aten.nll_loss_backward" || name == "aten.nll_loss2d_backward") return {1, 0, 0};
  if (name == "aten.slice_backward" || name == "aten.select_backward" ||
      name == "aten.constant_pad_nd") {
    return {1, 0, in(0)};
  }
  // Sums of products first; last the queries' gradients, which were added up in fp32.
  if (name == "aten._scaled_dot_product_flash_attention_backward") {
    return {2, in(0) + 2 * in(1), 2 * in(1)};
  }
  return {};
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
