#include "formats/op_products.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "formats/layout.h"

namespace ferry {
namespace {

// Returns the largest power of 2, up to 16 bytes, to which each row of a matrix is aligned. Rows
// can lie along either of the last two dimensions. A matrix with gaps in both is copied before it
// is multiplied.
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

std::optional<MatrixProduct> matmul(const OpCall& call) {
  const bool adds = call.name == "aten.addmm" || call.name == "aten.baddbmm";
  if (!adds && call.name != "aten.mm" && call.name != "aten.bmm") return std::nullopt;
  const std::size_t first = adds ? 1 : 0;
  if (call.in.size() < first + 2) return std::nullopt;
  const Layout &a = *call.in[first], &b = *call.in[first + 1];
  const std::size_t dims = a.shape.size();
  if (dims < 2 || b.shape.size() != dims) return std::nullopt;
  const std::int64_t rows = elements_of(a.shape) / std::max<std::int64_t>(a.shape[dims - 1], 1);
  const std::int64_t m = a.shape[dims - 2];
  if (rows == 0 || elements_of(b.shape) == 0) return std::nullopt;
  std::int64_t aligned = std::min(aligned_bytes(a), aligned_bytes(b));
  if (!call.out.empty() && call.out[0]->shape.size() == dims) {
    aligned = std::min(aligned, aligned_bytes(*call.out[0]));
  }
  return MatrixProduct{rows / m, m, b.shape[dims - 1], a.shape[dims - 1], aligned};
}

// FLOPs of a grouped product (of experts): each row is multiplied once, in whatever group it is.
std::int64_t grouped_flops(const OpCall& call) {
  if (call.in.size() < 2) return 0;
  const auto &a = call.in[0]->shape, &b = call.in[1]->shape;
  if (a.size() < 2 || b.size() < 2) return 0;
  const std::int64_t batch = a.size() == 3 && b.size() == 3 ? a[0] : 1;
  return 2 * batch * a[a.size() - 2] * a.back() * b.back();
}

// A convolution, or its backward.
struct Convolution {
  std::int64_t places = 0;  // positions of the output in all images; if transposed, of the input
  std::int64_t taps = 0;    // positions of the filter
  std::int64_t from = 0;    // channels in the weight's second dimension
  std::int64_t to = 0;      // channels in its first dimension
  bool grouped = false;
  bool output = false;     // true: the call computes the output
  bool of_input = false;   // true: it computes the gradient of the input
  bool of_weight = false;  // true: it computes the gradient of the weight

  std::int64_t flops() const {
    return 2 * (output + of_input + of_weight) * places * to * from * taps;
  }
};

std::optional<Convolution> convolution(const OpCall& call) {
  const bool backward = call.name == "aten.convolution_backward";
  if (!backward && call.name != "aten.convolution") return std::nullopt;
  const std::size_t first = backward ? 1 : 0;
  if (call.in.size() < first + 2 || call.out.empty()) return std::nullopt;
  const Layout &input = *call.in[first], &weight = *call.in[first + 1];
  const Layout& output = backward ? *call.in[0] : *call.out[0];
  const Layout& small = call.flags.transposed ? input : output;
  const Layout& other = call.flags.transposed ? output : input;
  if (weight.shape.size() < 3 || small.shape.size() != weight.shape.size() ||
      other.shape.size() != weight.shape.size()) {
    return std::nullopt;
  }
  Convolution made;
  made.places = small.shape[0] * elements_of(small.shape, 2);
  made.taps = elements_of(weight.shape, 2);
  made.from = weight.shape[1];
  made.to = weight.shape[0];
  made.grouped = other.shape[1] != weight.shape[1];
  made.output = !backward;
  if (!backward) return made;
  std::size_t passes = 0;
  for (const Layout* out : call.out) passes += out->shape.size() == weight.shape.size();
  made.of_weight = passes == 2 || (passes == 1 && call.out[0]->shape == weight.shape);
  made.of_input = passes == 2 || (passes == 1 && !made.of_weight);
  return made;
}

std::vector<MatrixProduct> products_of(const Convolution& it, bool transposed) {
  std::vector<MatrixProduct> products;
  if (it.grouped || it.flops() == 0) return products;
  const MatrixProduct onto{1, it.places, it.to, it.from * it.taps};
  const MatrixProduct back{1, it.places, it.from, it.to * it.taps};
  if (it.output) products.push_back(transposed ? back : onto);
  if (it.of_input) products.push_back(transposed ? onto : back);
  if (it.of_weight) products.push_back({1, it.to, it.from * it.taps, it.places});
  return products;
}

// The products of bitsandbytes: rows with packed weights, whose shape does not say how many numbers
// they have.
constexpr std::array<std::string_view, 5> kPackedProducts = {
    "bitsandbytes.gemm_4bit", "bitsandbytes.gemv_4bit", "bitsandbytes.int8_linear_matmul",
    "bitsandbytes.int8_scaled_mm", "bitsandbytes.int8_mixed_scaled_mm"};

std::int64_t packed_flops(const OpCall& call) {
  if (call.in.empty() || call.out.empty() || call.out[0]->shape.empty()) return 0;
  return 2 * elements_of(call.in[0]->shape) * call.out[0]->shape.back();
}

// Returns the number of pairs of a query and a key that a causal mask leaves. Its diagonal begins
// at the first query and the first key.
std::int64_t causal_pairs(std::int64_t queries, std::int64_t keys) {
  const std::int64_t triangle = std::min(queries, keys);
  return triangle * (triangle + 1) / 2 + (queries - triangle) * keys;
}

// The width of a key and of a value in all products of one pair of a query and a key.
std::int64_t attention_widths(bool backward, const Layout& query, const Layout& value) {
  const std::int64_t q = query.shape.back(), v = value.shape.back();
  return backward ? 3 * q + 2 * v : q + v;
}

// flash-attn's functions have the heads behind the positions. Of sequences that lie one after the
// other, only the number is known here, so each counts as equally long.
std::int64_t flash_attn_flops(const OpCall& call) {
  const std::size_t query = call.name.ends_with("bwd") ? 1 : 0;
  const bool together = call.name.find("varlen") != std::string_view::npos;
  if (call.in.size() < query + 4 || call.in[query]->shape.size() < 3) return 0;
  const auto& q = call.in[query]->shape;
  const std::int64_t batch = together ? elements_of(call.in[query + 3]->shape) - 1 : q[0];
  if (batch < 1) return 0;
  const std::int64_t heads = q[q.size() - 2];
  const auto length = [&](const Layout& of) {
    return together ? of.shape[0] / batch : of.shape[1];
  };
  const std::int64_t queries = length(*call.in[query]), keys = length(*call.in[query + 1]);
  const std::int64_t pairs = call.flags.is_causal ? causal_pairs(keys, queries) : queries * keys;
  return 2 * batch * heads * pairs *
         attention_widths(query == 1, *call.in[query], *call.in[query + 2]);
}

// Forward multiplies queries with keys, and the result with values. Backward repeats the first
// product, and has two more products of the width of keys and two of the width of values.
std::int64_t attention_flops(const OpCall& call) {
  const bool backward = call.name.ends_with("_backward");
  const std::size_t query = backward ? 1 : 0;
  if (call.in.size() < query + 3) return 0;
  const auto& q = call.in[query]->shape;
  const auto& k = call.in[query + 1]->shape;
  const auto& v = call.in[query + 2]->shape;
  if (q.size() < 2 || k.size() < 2 || v.empty()) return 0;
  const std::int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
  const std::int64_t heads = elements_of(q) / std::max<std::int64_t>(queries * q.back(), 1);
  const std::int64_t pairs = call.flags.is_causal ? causal_pairs(queries, keys) : queries * keys;
  return 2 * heads * pairs * attention_widths(backward, *call.in[query], *call.in[query + 2]);
}

}  // namespace

std::vector<MatrixProduct> op_products(const OpCall& call) {
  if (const auto product = matmul(call)) return {*product};
  if (const auto found = convolution(call)) return products_of(*found, call.flags.transposed);
  return {};
}

std::int64_t op_flops(const OpCall& call) {
  if (const auto product = matmul(call)) {
    return 2 * product->batch * product->m * product->n * product->k;
  }
  if (const auto found = convolution(call)) return found->flops();
  if (std::find(kPackedProducts.begin(), kPackedProducts.end(), call.name) !=
      kPackedProducts.end()) {
    return packed_flops(call);
  }
  if (call.name == "aten._grouped_mm") return grouped_flops(call);
  if (call.name.starts_with(kFlashAttn)) return flash_attn_flops(call);
  return is_attention(call.name) ? attention_flops(call) : 0;
}

}  // namespace ferry
