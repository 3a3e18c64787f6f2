#include "formats/op_call.h"

#include <cstddef>
#include <functional>
#include <numeric>

#include "formats/layout.h"

namespace ferry {

void OpFlags::set(std::string_view argument, bool value) {
  if (argument == "is_causal") is_causal = value;
  if (argument == "transposed") transposed = value;
  if (argument == "accumulate") accumulate = value;
  if (argument == "unsafe") unsafe = value;
  if (argument == "include_self") include_self = value;
}

void OpFlags::set(std::string_view argument, std::string_view text) {
  if (argument == "reduce") reduce_mean = text == "mean";
}

OpTraffic& OpTraffic::operator+=(const OpTraffic& more) {
  kernels += more.kernels;
  read_bytes += more.read_bytes;
  written_bytes += more.written_bytes;
  return *this;
}

std::int64_t elements_of(const std::vector<std::int64_t>& shape, std::size_t from) {
  if (from >= shape.size()) return 1;
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(),
                         std::int64_t{1}, std::multiplies<>());
}

std::int64_t distinct_bytes(const Layout& layout) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::int64_t size = layout.shape[i];
    if (layout.strides[i] != 0 || size == 0) count *= size;
  }
  return count * itemsize(layout.dtype);
}

}  // namespace ferry
