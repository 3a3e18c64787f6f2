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

// [..., m, k] times [..., k, n].
std::int64_t matmul_flops(const Layout& a, const Layout& b) {
  return b.shape.empty() ? 0 : 2 * product(a.shape) * b.shape.back();
}

// Every element of the output takes a multiply and an add for each weight of its channel.
std::int64_t convolution_flops(const std::vector<std::int64_t>& output, const Layout& weight) {
  return 2 * product(output) * product(weight.shape, 1);
}

// Counts queries times keys, and that product times values.
std::int64_t attention_flops(const OpCall& call, std::size_t query) {
  if (call.in.size() < query + 3) return 0;
  const auto& q = call.in[query]->shape;
  const auto& k = call.in[query + 1]->shape;
  const auto& v = call.in[query + 2]->shape;
  if (q.size() < 2 || k.size() < 2 || v.empty()) return 0;
  const std::int64_t rows = product(q) / std::max<std::int64_t>(q.back(), 1);
  return 2 * rows * k[k.size() - 2] * (q.back() + v.back());
}

std::int64_t flops(const OpCall& call) {
  const std::string_view name = call.name;
  const auto& in = call.in;
  if ((name == "aten.mm" || name == "aten.bmm") && in.size() >= 2) {
    return matmul_flops(*in[0], *in[1]);
  }
  if ((name == "aten.addmm" || name == "aten.baddbmm") && in.size() >= 3) {
    return matmul_flops(*in[1], *in[2]);
  }
  if (name == "aten.convolution" && in.size() >= 2 && !call.out.empty()) {
    return convolution_flops(call.out[0]->shape, *in[1]);
  }
  if (name == "aten.convolution_backward" && in.size() >= 3) {
    std::int64_t passes = 0;  // one for the input's gradient, one for the weight's
    for (const Layout* out : call.out) passes += out->shape.size() == in[1]->shape.size();
    return passes * convolution_flops(in[0]->shape, *in[2]);
  }
  if (name.starts_with("aten._scaled_dot_product")) {
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

}  // namespace

bool reads_shapes_only(std::string_view label) { return among(kShapeOnly, label); }
bool writes_nothing(std::string_view label) { return among(kWritesNothing, label); }
bool overwrites(std::string_view label) { return among(kOverwrites, label); }

OpCosts op_costs(const OpCall& call) {
  return {flops(call), bytes_read(call), bytes_written(call)};
}

}  // namespace ferry
