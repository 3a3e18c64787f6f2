// Computes a layout's number of elements, its strides, and the bytes that it covers.
//
// Shapes and strides are in elements; results are in elements or bytes, as their names say. All is
// checked: a negative size, stride or offset, a rank mismatch or a number beyond int64 throws
// LayoutError, so readers of files need not check for overflow. As in PyTorch, a tensor with a size
// of 0 covers no bytes, whatever its offset is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "formats/program.h"

namespace ferry {

class LayoutError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

std::int64_t itemsize(DType dtype);  // bytes of an element
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

std::int64_t numel(std::span<const std::int64_t> shape);
std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape);
Layout contiguous_layout(DType dtype, std::vector<std::int64_t> shape);
bool is_contiguous(const Layout& layout);  // true if row-major, from offset 0
bool is_dense(const Layout& layout);       // true if its elements fill the hull once

// The half-open range of bytes from the first to the last element, counted from the storage's
// start. A strided window does not use all bytes of it.
struct Hull {
  std::int64_t begin_bytes = 0;
  std::int64_t end_bytes = 0;
  bool operator==(const Hull&) const = default;
};

Hull hull(const Layout& layout);

// Throws LayoutError if the storage is larger than any simulated device (formats/limits.h).
void check_storage(const Layout& layout);

std::int64_t tensor_bytes(const Layout& layout);   // elements × itemsize: the size of a dense copy
std::int64_t storage_bytes(const Layout& layout);  // the size of the smallest storage that holds it

}  // namespace ferry
