#include "real/capture/op_call.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "formats/layout.h"

namespace ferry::real::capture {
namespace {

std::int64_t distinct_bytes(const Ref& ref) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < ref.layout.shape.size(); ++i) {
    const std::int64_t size = ref.layout.shape[i];
    if (ref.layout.strides[i] != 0 || size == 0) count *= size;
  }
  return count * itemsize(ref.layout.dtype);
}

std::int64_t product(const std::vector<std::int64_t>& sizes, std::size_t from = 0) {
  if (from >= sizes.size()) return 1;
  return std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(from), sizes.end(),
                         std::int64_t{1}, std::multiplies<>());
}

// [..., m, k] times [..., k, n].
std::int64_t matmul_flops(const Ref& a, const Ref& b) {
  return b.layout.shape.empty() ? 0 : 2 * product(a.layout.shape) * b.layout.shape.back();
}

// Every element of the output takes a multiply and an add for each weight of its channel.
std::int64_t convolution_flops(const std::vector<std::int64_t>& output, const Ref& weight) {
  return 2 * product(output) * product(weight.layout.shape, 1);
}

// Counts queries times keys, and that product times values.
std::int64_t attention_flops(const OpEvent& event, std::size_t query) {
  if (event.in.size() < query + 3) return 0;
  const auto& q = event.in[query].layout.shape;
  const auto& k = event.in[query + 1].layout.shape;
  const auto& v = event.in[query + 2].layout.shape;
  if (q.size() < 2 || k.size() < 2 || v.empty()) return 0;
  const std::int64_t rows = product(q) / std::max<std::int64_t>(q.back(), 1);
  return 2 * rows * k[k.size() - 2] * (q.back() + v.back());
}

std::int64_t flops(const OpEvent& event) {
  const std::string_view name = event.name;
  const std::vector<Ref>& in = event.in;
  if ((name == "aten.mm" || name == "aten.bmm") && in.size() >= 2) {
    return matmul_flops(in[0], in[1]);
  }
  if ((name == "aten.addmm" || name == "aten.baddbmm") && in.size() >= 3) {
    return matmul_flops(in[1], in[2]);
  }
  if (name == "aten.convolution" && in.size() >= 2 && !event.out.empty()) {
    return convolution_flops(event.out[0].layout.shape, in[1]);
  }
  if (name == "aten.convolution_backward" && in.size() >= 3) {
    std::int64_t passes = 0;  // one for the input's gradient, one for the weight's
    for (const Ref& out : event.out) passes += out.layout.shape.size() == in[1].layout.shape.size();
    return passes * convolution_flops(in[0].layout.shape, in[2]);
  }
  if (name.starts_with("aten._scaled_dot_product")) {
    // Backward has five matmuls, forward has two.
    return name.ends_with("_backward") ? attention_flops(event, 1) * 5 / 2
                                       : attention_flops(event, 0);
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

std::int64_t bytes_read(const OpEvent& event) {
  if (reads_shapes_only(event.name)) return 0;
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < event.in.size(); ++i) {
    const bool written =
        std::find(event.writes.begin(), event.writes.end(), i) != event.writes.end();
    if (written && among(kOverwrites, event.name)) continue;
    std::int64_t part = distinct_bytes(event.in[i]);
    // A gather reads as much of its table as it returns.
    if (i == 0 && among(kGathers, event.name) && !event.out.empty()) {
      part = std::min(part, distinct_bytes(event.out[0]));
    }
    bytes += part;
  }
  return bytes;
}

std::int64_t bytes_written(const OpEvent& event) {
  if (writes_nothing(event.name)) return 0;
  std::int64_t bytes = 0;
  for (const Ref& out : event.out) bytes += distinct_bytes(out);
  for (const std::uint32_t position : event.writes) bytes += distinct_bytes(event.in[position]);
  return bytes;
}

}  // namespace

void each_tensor(const c10::IValue& value, const std::function<void(const at::Tensor&)>& see) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number()) see(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) each_tensor(each, see);
  }
}

void each_argument(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                   const std::function<void(const at::Tensor&, bool)>& see) {
  const auto& arguments = op.schema().arguments();
  const std::size_t first = stack.size() - arguments.size();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    const bool writes = alias != nullptr && alias->isWrite();
    each_tensor(stack[first + i], [&](const at::Tensor& tensor) { see(tensor, writes); });
  }
}

std::string label(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  const std::size_t colons = name.find("::");
  if (colons == std::string_view::npos) return std::string(name);
  // It avoids replace(): at -O3 g++ 12 warns of an impossible copy.
  return std::string(name.substr(0, colons)) + "." + std::string(name.substr(colons + 2));
}

bool reads_shapes_only(std::string_view label) { return among(kShapeOnly, label); }
bool writes_nothing(std::string_view label) { return among(kWritesNothing, label); }

void set_costs(OpEvent& event) {
  event.flops = flops(event);
  event.read_bytes = bytes_read(event);
  event.written_bytes = bytes_written(event);
}

}  // namespace ferry::real::capture
