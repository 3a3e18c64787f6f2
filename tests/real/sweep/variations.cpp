#include "tests/real/sweep/variations.h"

#include <ATen/ATen.h>

#include <utility>

namespace ferry::sweep {
namespace {

using at::Tensor;
using Made = std::optional<Leaf>;

constexpr const char* kAsRecorded = "as recorded";

Leaf as_it_is(const Tensor& tensor) {
  return {tensor, [](const Tensor& leaf) { return leaf; }};
}

// With its strides and offset, which a copy does not keep where they leave gaps.
Leaf as_recorded(const Tensor& x) {
  const bool strided = x.layout() == at::kStrided && !x.is_nested();
  if (!strided || (x.is_non_overlapping_and_dense() && x.storage_offset() == 0)) {
    return as_it_is(x);
  }
  const auto count = static_cast<std::int64_t>(x.storage().nbytes()) / x.element_size();
  return {x.as_strided({count}, {1}, 0),
          [sizes = x.sizes().vec(), strides = x.strides().vec(), offset = x.storage_offset()](
              const Tensor& leaf) { return leaf.as_strided(sizes, strides, offset); }};
}

Variation cast(std::string name, c10::ScalarType to) {
  return {std::move(name), [to](const Tensor& x) -> Made {
            const bool complex = c10::isComplexType(to);
            if (!x.is_floating_point() && !(complex && x.is_complex())) return std::nullopt;
            if (x.scalar_type() == to) return std::nullopt;
            return as_it_is(x.to(to));
          }};
}

Made with_offset(const Tensor& x) {
  const std::int64_t count = x.numel();
  const Tensor padded = at::constant_pad_nd(x.reshape({-1}), {3, 2});
  return Leaf{padded, [count, sizes = x.sizes().vec()](const Tensor& leaf) {
                return leaf.narrow(0, 3, count).view(sizes);
              }};
}

Made with_gaps(const Tensor& x) {
  return Leaf{at::stack({x, x}, -1), [](const Tensor& leaf) { return leaf.select(-1, 1); }};
}

Made transposed(const Tensor& x) {
  if (x.dim() < 2) return std::nullopt;
  return Leaf{x.transpose(0, -1).contiguous(),
              [](const Tensor& leaf) { return leaf.transpose(0, -1); }};
}

Made channels_last(const Tensor& x) {
  if (x.dim() != 4 && x.dim() != 5) return std::nullopt;
  return as_it_is(x.contiguous(x.dim() == 4 ? at::MemoryFormat::ChannelsLast
                                            : at::MemoryFormat::ChannelsLast3d));
}

Made expanded(const Tensor& x) {
  if (x.dim() == 0 || x.size(0) < 2) return std::nullopt;
  return Leaf{x.narrow(0, 0, 1).contiguous(),
              [sizes = x.sizes().vec()](const Tensor& leaf) { return leaf.expand(sizes); }};
}

Made conjugated(const Tensor& x) {
  if (!x.is_complex()) return std::nullopt;
  return Leaf{x.conj().resolve_conj(), [](const Tensor& leaf) { return leaf.conj(); }};
}

Made emptied(const Tensor& x) {
  if (x.dim() == 0) return std::nullopt;
  return as_it_is(x.narrow(0, 0, 0).contiguous());
}

Made without_dims(const Tensor& x) {
  if (x.dim() == 0 || x.numel() == 0) return std::nullopt;
  return as_it_is(x.reshape({-1}).select(0, 0).clone());
}

// Kernels trust indices: their layout is left alone.
bool may_have(const Variation& variation, const Tensor& tensor, bool written) {
  if (variation.name == kAsRecorded) return true;
  if (tensor.layout() != at::kStrided || (written && variation.overlaps)) return false;
  return variation.reshapes || tensor.is_floating_point() || tensor.is_complex();
}

}  // namespace

std::vector<Variation> variations(bool all) {
  std::vector<Variation> found = {{kAsRecorded, as_recorded}};
  if (!all) return found;
  found.push_back(cast("float64", at::kDouble));
  found.push_back(cast("bfloat16", at::kBFloat16));
  found.push_back(cast("half", at::kHalf));
  found.push_back(cast("complex64", at::kComplexFloat));
  found.push_back(cast("complex128", at::kComplexDouble));
  found.push_back({"a view with an offset", with_offset});
  found.push_back({"a view with gaps", with_gaps});
  found.push_back({"transposed", transposed});
  found.push_back({"channels last", channels_last});
  found.push_back({"expanded", expanded, /*overlaps=*/true});
  found.push_back({"conjugated", conjugated});
  found.push_back({"zero-size", emptied, false, /*reshapes=*/true});
  found.push_back({"0-dim", without_dims, false, /*reshapes=*/true});
  return found;
}

std::optional<Case> varied(const Call& call, const Variation& variation) {
  Case made{call, {}};
  bool any = false;
  const auto& schema = call.op.schema().arguments();
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const bool written = schema[i].alias_info() && schema[i].alias_info()->isWrite();
    for (const Tensor& tensor : tensors_in(call.arguments[i])) {
      const bool may = may_have(variation, tensor, written);
      const Made leaf = may ? variation.leaf(tensor) : std::nullopt;
      any = any || leaf;
      made.leaves.push_back(leaf.value_or(as_recorded(tensor)));
    }
  }
  if (!any) return std::nullopt;
  return made;
}

}  // namespace ferry::sweep
