#include "formats/layout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "formats/limits.h"

namespace ferry {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array<DTypeInfo, 11> kDTypes = {{{"f64", 8},
                                                {"f32", 4},
                                                {"bf16", 2},
                                                {"f16", 2},
                                                {"f8", 1},
                                                {"i64", 8},
                                                {"i32", 4},
                                                {"i16", 2},
                                                {"i8", 1},
                                                {"u8", 1},
                                                {"bool", 1}}};
static_assert(kDTypes.size() == static_cast<std::size_t>(DType::kBool) + 1);

std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw LayoutError("a size beyond 64 bits");
  return result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw LayoutError("a size beyond 64 bits");
  return result;
}

}  // namespace

std::int64_t itemsize(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].bytes; }
std::string_view name(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t numel(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) throw LayoutError("a negative size");
    if (size == 0) count = 0;
  }
  if (count == 0) return 0;  // do not multiply first: [2^40, 2^40, 0] is a legal shape
  for (const std::int64_t size : shape) count = product(count, size);
  return count;
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] < 0) throw LayoutError("a negative size");
    strides[i] = stride;
    if (i > 0) stride = product(stride, std::max<std::int64_t>(shape[i], 1));  // as in PyTorch
  }
  return strides;
}

Layout contiguous_layout(DType dtype, std::vector<std::int64_t> shape) {
  Layout layout{.dtype = dtype, .shape = std::move(shape), .strides = {}, .offset = 0};
  layout.strides = contiguous_strides(layout.shape);
  return layout;
}

bool is_contiguous(const Layout& layout) {
  return layout.offset == 0 && layout.strides == contiguous_strides(layout.shape);
}

Hull hull(const Layout& layout) {
  if (layout.strides.size() != layout.shape.size()) {
    throw LayoutError("as many strides as sizes expected");
  }
  if (layout.offset < 0) throw LayoutError("a negative offset");
  const bool empty = numel(layout.shape) == 0;
  std::int64_t last = layout.offset;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.strides[i] < 0) throw LayoutError("a negative stride");
    if (!empty) last = sum(last, product(layout.shape[i] - 1, layout.strides[i]));
  }
  if (empty) return {};
  const std::int64_t item = itemsize(layout.dtype);
  return {.begin_bytes = product(layout.offset, item), .end_bytes = product(sum(last, 1), item)};
}

void check_storage(const Layout& layout) {
  if (layout.shape.size() > limits::kDimensions) {
    throw LayoutError("more than " + std::to_string(limits::kDimensions) + " dimensions");
  }
  if (hull(layout).end_bytes > limits::kStorageBytes) {
    throw LayoutError("a storage of more than " + std::to_string(limits::kStorageBytes) +
                      " bytes (8 TiB)");
  }
}

bool is_dense(const Layout& layout) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions;  // stride, size
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] == 0) return true;
    if (layout.shape[i] > 1) dimensions.emplace_back(layout.strides[i], layout.shape[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  std::int64_t filled = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != filled) return false;
    filled = product(filled, size);
  }
  return true;
}

std::int64_t tensor_bytes(const Layout& layout) {
  return product(numel(layout.shape), itemsize(layout.dtype));
}

std::int64_t storage_bytes(const Layout& layout) { return hull(layout).end_bytes; }

}  // namespace ferry
